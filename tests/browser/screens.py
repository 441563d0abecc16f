"""Sizes of windows."""

DESK = {"width": 1280, "height": 860}
PHONE = {"width": 375, "height": 812}
