"""Sums of procurement: buying or renting a fleet, quotes beside published contract prices."""
