"""From raw orders to baskets per category."""
