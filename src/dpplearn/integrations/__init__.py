"""Other libraries' conventions."""
