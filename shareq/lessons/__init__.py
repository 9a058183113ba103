"""Tools of the tutorials: a bench for experiments, the life of one record, crews and programs at work, and checks.

A learner's answer is a function; a check reads only the function's effects in the journal. `exercise(key)` has the
checks and hints of the lessons, `predict(...)` asks before an outcome is shown, `progress()` is the table of both.
"""

from shareq.lessons.bench import Bench, attempt, settle, with_one_stuck
from shareq.lessons.checks import NotYet, Passed, check, check_life, check_window, in_flight
from shareq.lessons.crew import Crew, Shift, Stint, shifts_plot, work_together
from shareq.lessons.delays import delays_plot
from shareq.lessons.exercise import Exercise, Verdict, exercise
from shareq.lessons.install import install_jvm
from shareq.lessons.late_write import late_write
from shareq.lessons.letters import create_queue, letters, name_queue
from shareq.lessons.life import LOADED, Life, Moment, life
from shareq.lessons.office import Office
from shareq.lessons.prediction import Outcome, Prediction, predict
from shareq.lessons.program import Program, ProgramFailed
from shareq.lessons.progress import Progress, certificate, progress, verify
from shareq.lessons.state_log import in_words, state_log, state_records
from shareq.lessons.transactions import transactional, write

__all__ = [
    "LOADED",
    "Bench",
    "Crew",
    "Exercise",
    "Life",
    "Moment",
    "NotYet",
    "Office",
    "Outcome",
    "Passed",
    "Prediction",
    "Program",
    "ProgramFailed",
    "Progress",
    "Shift",
    "Stint",
    "Verdict",
    "attempt",
    "certificate",
    "check",
    "check_life",
    "check_window",
    "create_queue",
    "delays_plot",
    "exercise",
    "in_flight",
    "in_words",
    "install_jvm",
    "late_write",
    "letters",
    "life",
    "name_queue",
    "predict",
    "progress",
    "settle",
    "shifts_plot",
    "state_log",
    "state_records",
    "transactional",
    "verify",
    "with_one_stuck",
    "work_together",
    "write",
]
