"""Procurement: buying or renting a fleet, published contract prices."""
