"""What all commands read their options and requests with, and print their answers with."""
