"""Other programs that answer the job's question from the same topics. Not part of the product."""
