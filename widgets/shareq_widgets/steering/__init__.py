"""A control panel on a share group of a cluster in this process, without any widget: its controls, and stories.

The design:

- `Steering(cluster, group, topics)` owns an admin client, a `shareq.team.Team` of consumers and a `shareq.team.Feed`
  for each topic. They are events of the cluster's loop, so that a virtual clock moves them, and only it.
- A `Control` is one call of the public API with one value. `code(value)` is the line of Python that makes the call;
  `do(value)` checks the value and executes exactly that line, so that the line shown and the effect cannot differ.
- `Steering.setup` are the lines that make the names used by the others; `Steering.log` are the lines executed so far.
  Both together, run after the line that made the cluster, repeat the session; on a virtual clock, event for event.
- A `Story` is a cluster of its own and a list of steps: a text with a question, actions of controls, an answer whose
  figures are read from the journal. On a virtual clock, with the story's seed, it always has the same course.
"""

from shareq_widgets.steering.control import Control
from shareq_widgets.steering.steering import Steering
from shareq_widgets.steering.stories import STORIES, Preset, Story

__all__ = ["STORIES", "Control", "Preset", "Steering", "Story"]
