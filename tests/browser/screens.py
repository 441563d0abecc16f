"""Sizes of windows, and names that are long."""

DESK = {"width": 1280, "height": 860}
PHONE = {"width": 375, "height": 812}
LONG_NAMES = tuple(
    f"{number:03d}.{name}"
    for number, name in enumerate(
        [
            "Rufous_Hummingbird",
            "Black_throated_Blue_Warbler",
            "Great_Crested_Flycatcher",
            "American_Three_toed_Woodpecker",
            "Donaudampfschifffahrtsgesellschaft",
            "a bird of no great length",
        ],
        start=69,
    )
)
