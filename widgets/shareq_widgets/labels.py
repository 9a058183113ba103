"""Names for screen readers: the sliders of ipywidgets have none."""

from __future__ import annotations

import anywidget
import ipywidgets

from shareq_widgets.player import STATIC


class Labels(anywidget.AnyWidget):
    """An invisible widget that names the sliders and fields in the box of `labelled`, by their labels and buttons."""

    _esm = STATIC / "labels.js"


def labelled(box: ipywidgets.Box) -> Labels:
    """A child for the box, so that what is in it has names."""
    box.add_class("sq-labelled")
    return Labels()
