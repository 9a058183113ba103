"""`what_if(...)`: a group's lock duration and limits against p99, redeliveries, archived records and throughput.

The figures were computed beforehand, by `shareq what-if`. The setting in force is read from the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Unpack

import ipywidgets

from shareq.broker import Cluster
from shareq.model.configs import BrokerConfig, GroupConfig
from shareq.model.errors import ConfigException, KafkaException
from shareq.model.printable import escape
from shareq.observer import Observer, TapFollower
from shareq.sim.what_if import KEYS, Setting, Table, stored_table
from shareq.trace import Journal
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq_widgets import stored
from shareq_widgets.drawing import Drawing
from shareq_widgets.group_picture import Frame
from shareq_widgets.inputs import on_change, on_click
from shareq_widgets.instant import Instant
from shareq_widgets.pictures import what_if as drawing
from shareq_widgets.pictures.what_if_words import WhatIfContent, field_text, words
from shareq_widgets.sources import open_cluster
from shareq_widgets.views import Options, group_picture, refusing_others

SLIDERS: Final = {
    "lock_duration_ms": "lock duration",
    "record_locks": "max record locks",
    "delivery_count_limit": "delivery limit",
}
"""The fields of a setting, and the names of their sliders."""

REFUSALS = (KafkaException, ConfigException)


@used_by_one_thread
class WhatIf(ipywidgets.VBox):
    """A chosen setting of a group compared with the one in force. Create one with `what_if(...)`.

    `setting` and `workload` may be set. `charts` is the view below the sliders. It is linked with the other views of
    the source, and shows the setting that was in force at their moment. `apply()` puts the chosen one into force.
    """

    def __init__(
        self,
        source: Any,
        group: str,
        table: Table | None = None,
        *,
        cluster: Cluster | None = None,
        execute: Callable[[str], None] | None = None,
        options: Options,
    ) -> None:
        """`table`: None is the one that comes with shareq. `cluster`: the one that is configured; `execute` executes a
        line of Python in which it has the name "cluster"."""
        self.table = table = table or stored_table()
        self._group, self._cluster, self._admin = group, cluster, _admin_text(source)
        self._execute = execute or (lambda line: exec(line, {"cluster": cluster}))
        self._workload = next(iter(table.workloads))
        self._setting = _closest(table, Setting())
        self._updating = False
        self._refusal = ""
        self.charts = group_picture(source, group, self._draw, "What if", {**options, "controls": False})
        self._setting = _closest(table, self.current or Setting())
        self._sliders = {name: _slider(table, name, text) for name, text in SLIDERS.items()}
        self._workloads = ipywidgets.Dropdown(options=list(table.workloads), description="workload")
        self._apply = ipywidgets.Button(description=f"apply to {group}")
        self._code = ipywidgets.HTML()
        for field in (*self._sliders.values(), self._workloads):
            on_change(field, self._turned)
        on_click(self._apply, self._click)
        self.charts.observe(lambda _: self._show_code(), "drawing")
        choices = ipywidgets.Box([*self._sliders.values(), self._workloads])
        choices.add_class("sq-what-if-choices")
        action = ipywidgets.Box([*([self._apply] if cluster is not None else []), self._code])
        action.add_class("sq-what-if-action")
        super().__init__([choices, self.charts, *([action] if group else [])])
        self.add_class("sq-what-if")
        self._show()

    # ---- the two settings --------------------------------------------------------------------------------------------

    @property
    def setting(self) -> Setting:
        """The chosen setting, one of the table's grid. ConfigException names another one."""
        return self._setting

    @setting.setter
    def setting(self, setting: Setting) -> None:
        for name, value in setting._asdict().items():
            if value not in self.table.grid[name]:
                computed = ", ".join(f"{one:,}" for one in self.table.grid[name])
                raise ConfigException(f"{name}={value!r}: must be one that was computed: {computed}")
        self._setting = setting
        self._refusal = ""
        self._show()

    @property
    def workload(self) -> str:
        """The name of the workload. ConfigException names an unknown one."""
        return self._workload

    @workload.setter
    def workload(self, name: str) -> None:
        if name not in self.table.workloads:
            raise ConfigException(f"workload={name!r}: must be one of {', '.join(self.table.workloads)}")
        self._workload = name
        self._show()

    @property
    def current(self) -> Setting | None:
        """The setting in force at the shown moment; None without a group."""
        return self._in_force(self.charts.instant)

    def _in_force(self, instant: Instant) -> Setting | None:
        return setting_at(instant, self._cluster) if self._group else None

    # ---- applying ----------------------------------------------------------------------------------------------------

    @property
    def code(self) -> str:
        """The line of Python that puts the chosen setting into force; "" if it is in force.

        `apply()` executes it on a cluster in this process; for another source it is a proposal for an admin client.
        """
        current = self.current
        changes = {
            KEYS[name]: value
            for name, value in self._setting._asdict().items()
            if current is None or value != getattr(current, name)
        }
        if not changes:
            return ""
        if self._cluster is not None:
            return f"cluster.configure_group({self._group!r}, {changes!r})"
        return f"{self._admin}.alter_group_configs({self._group!r}, {changes!r})"

    def apply(self) -> str:
        """Put the chosen setting into force, and return the executed line. ConfigException if the source cannot be
        configured, KafkaException if the brokers do not allow the setting."""
        if self._cluster is None:
            raise ConfigException("the source must be an open cluster of this process to be configured")
        self.charts.last()
        line = self.code
        if line:
            self._execute(line)
            self.charts.last()
        return line

    def _click(self) -> None:
        try:
            self.apply()
        except REFUSALS as refusal:
            self._refusal = refusal.error.str() if isinstance(refusal, KafkaException) else str(refusal)
            self._show_code()

    # ---- what is shown -----------------------------------------------------------------------------------------------

    def content(self, instant: Instant) -> WhatIfContent:
        """What the picture shows at a moment."""
        return WhatIfContent(self.table, self._workload, self._setting, self._in_force(instant), self._group)

    def _draw(self, frame: Frame) -> Drawing:
        return drawing.draw(self.content(frame.instant), frame.width)

    def _turned(self, _change: Any) -> None:
        if not self._updating:
            self._workload = self._workloads.value
            self.setting = Setting(**{name: slider.value for name, slider in self._sliders.items()})

    def _show(self) -> None:
        self._updating = True
        try:
            self._workloads.value = self._workload
            for name, slider in self._sliders.items():
                slider.value = getattr(self._setting, name)
        finally:
            self._updating = False
        self.charts.redraw()
        self._show_code()

    def _show_code(self) -> None:
        line = self.code
        self._apply.disabled = not line
        refused = f'<p class="sq-refused" role="alert">{escape(self._refusal)}</p>' if self._refusal else ""
        text = escape(line or "# this setting is in force")
        self._code.value = f'<pre class="sq-code" aria-label="the code of the button">{text}</pre>{refused}'

    def close(self) -> None:
        """Remove the view, and close an observer that was created for it."""
        if hasattr(self, "charts"):  # the view of a refused source has none
            self.charts.close()
        super().close()

    # ---- forms -------------------------------------------------------------------------------------------------------

    def to_svg(self, theme: str = "light", width: int | None = None) -> str:
        """The charts as a self-contained SVG picture; `width` in px, None is the width of the view."""
        return self.charts.to_svg(theme, width)

    def picture(self, *, whole: bool = False) -> str:
        """What a notebook stores: the charts, which show one moment."""
        del whole
        return self.to_svg()

    def save(self, path: str | Path, *, theme: str | None = None, width: int | None = None) -> Path:
        """Write the charts to a file, see `Player.save`."""
        return self.charts.save(path, theme=theme, width=width)

    def __repr__(self) -> str:
        return f"What if\n{words(self.content(self.charts.instant))}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live widget, with pictures and a text for readers without widgets."""
        return {**(super()._repr_mimebundle_(**kwargs) or {}), **stored.bundle(self)}


@refusing_others
def what_if(
    source: Any = None, *, group: str = "", table: Table | str | Path | None = None, **options: Unpack[Options]
) -> WhatIf:
    """A group's lock duration and limits against p99, redeliveries, archived records and throughput.

    `source` and `options`: as of the other views; without a source there is no setting in force. A cluster in this
    process can be configured by the view. `table`: a file of `shareq what-if`; None is the one that comes with shareq.
    ConfigException for an unknown group, or a source without a group; OSError for a file that cannot be read.
    """
    if (source is None) is not (group == ""):
        raise ConfigException(f"group={group!r}: must be the name of a group if, and only if, there is a source")
    found = stored_table(table) if isinstance(table, (str, Path)) else table
    cluster = open_cluster(source)
    return WhatIf(Journal() if source is None else source, group, found, cluster=cluster, options=options)


def _admin_text(source: Any) -> str:
    """The admin client of a source in Python; of a recording, a name for it."""
    observed = isinstance(source, (str, Observer, TapFollower))
    servers = source if isinstance(source, str) else getattr(source, "bootstrap_servers", "")
    return f"Admin({{'bootstrap.servers': {servers!r}}})" if observed else "admin"


def setting_at(instant: Instant, cluster: Cluster | None = None) -> Setting:
    """The setting of the group at a moment: as its leaders have it, or its configuration with the brokers' defaults.

    At the end of the journal of an open `cluster`, the cluster's own configuration.
    """
    history, until = instant.history, instant.until
    overrides: Mapping[str, str] = history.group(until).configs
    broker = BrokerConfig()
    if cluster is not None and not cluster.closed:
        broker = cluster.image.broker_config
        if until >= history.total:
            overrides = cluster.image.group_configs.get(history.group_id, {})
    else:
        for place in history.share_partitions(until):
            state = history.share_partition(*place, until)
            return Setting(state.lock_duration_ms, state.max_record_locks, state.delivery_count_limit)
    known = {key: value for key, value in overrides.items() if value is not None}
    config = GroupConfig.effective(known, broker)
    return Setting(config.record_lock_duration_ms, config.partition_max_record_locks, config.delivery_count_limit)


def _closest(table: Table, setting: Setting) -> Setting:
    """The setting of the grid nearest to one, which may be outside."""
    inside = {
        name: min(max(value, table.grid[name][0]), table.grid[name][-1]) for name, value in setting._asdict().items()
    }
    found = table.nearest(Setting(**inside))
    assert found is not None
    return found


def _slider(table: Table, name: str, text: str) -> Any:
    values = [(field_text(name, value), value) for value in table.grid[name]]
    return ipywidgets.SelectionSlider(options=values, description=text, style={"description_width": "initial"})
