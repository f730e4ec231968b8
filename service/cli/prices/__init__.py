"""Commands for prices, offers, accelerators and models."""
