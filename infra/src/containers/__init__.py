"""What a stack in containers needs beside the services: secrets, databases, tokens."""
