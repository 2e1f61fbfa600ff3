"""What the service answers, and how it is made from the fleet."""
