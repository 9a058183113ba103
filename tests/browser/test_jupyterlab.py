"""The fixtures of the browser tests: a notebook runs in a real JupyterLab, and its widgets reach the page and back."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_a_widget_is_drawn_and_a_click_reaches_the_kernel(run_notebook: Callable[..., Page]) -> None:
    page = run_notebook(
        """
        import ipywidgets
        button, label = ipywidgets.Button(description="press"), ipywidgets.Label("idle")
        button.on_click(lambda _: setattr(label, "value", "pressed"))
        ipywidgets.VBox([button, label])
        """
    )
    label = page.locator(".widget-label")
    expect(label).to_have_text("idle")
    page.get_by_role("button", name="press").click()
    expect(label).to_have_text("pressed")


def test_the_kernel_can_import_the_project(run_notebook: Callable[..., Page]) -> None:
    page = run_notebook("import shareq, shareq_widgets", "print(shareq.__name__, shareq_widgets.__name__)")
    expect(page.locator(".jp-OutputArea-output")).to_have_text("shareq shareq_widgets\n")


def test_a_cell_that_fails_fails_the_test(run_notebook: Callable[..., Page]) -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run_notebook("1 / 0")
