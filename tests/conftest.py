"""What all tests share: hypothesis takes its time and says how to repeat what failed; children die."""

from hypothesis import settings

pytest_plugins = ["children"]

settings.register_profile("torchsite", deadline=None, print_blob=True)
settings.load_profile("torchsite")
