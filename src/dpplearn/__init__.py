"""Learn determinantal point processes, and mixtures of them, from example subsets: baskets, registries, playlists.

`models.model` has the queries of all models, such as `recommend` and `sample`, with item names. It asks
`distributions.distribution`, which writes each query once, for items as integers. `learners` fits models; its docstring
says where a learner goes. `data` reads baskets, `pipeline` prepares raw orders and fits a model per category,
`evaluation` and `analysis` measure, and `lifecycle` updates and checks models. `cli` and `service` offer all of it as
commands and over HTTP.
"""

import lazy_loader

# The public names are listed once, in __init__.pyi, and each is loaded when it is first used: a program that asks a
# model one question should not wait for what learns, prepares and plots.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
