"""Learn determinantal point processes, and mixtures of them, from example subsets: baskets, registries, playlists."""

import lazy_loader

# The public names are listed once, in __init__.pyi, and each is loaded when it is first used: a program that asks a
# model one question should not wait for what learns, prepares and plots.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
