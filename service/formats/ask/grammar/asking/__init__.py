"""What a sentence asks for, and what of it is asked back."""
