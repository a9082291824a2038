"""Items and orders: a catalogue, and orders that wait for their user's credit."""
