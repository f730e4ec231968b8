"""Laws are checked on the same examples every time: no deadline to trip over on a busy machine, no files left behind."""

from hypothesis import settings

settings.register_profile("laws", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("laws")
