// The data of the widgets' traits, in the form that Python sends: shareq/trace/views/snapshot.py (snapshots),
// shareq_widgets/look.py (sizes, shapes, colours) and shareq_widgets/words.py (texts). Offsets are half-open ranges.

import type TABLE from "../commands.json";

/** Its fields have names in draw.js: FIRST, END, ... A run below the SPSO ends after the count. */
export type Run = [
  first: number, end: number, state: string, count: number,
  member?: string | null, deadline_ms?: number | null, write?: number | null, to?: string | null,
];

export interface Member {
  id: string;
  name: string;
  letter: string;
  colour: string;
  held: number;
  deadline_ms: number | null;
  alive: boolean;
  frozen: boolean;
}

export interface Mark {
  order: number;
  time_ms: number;
  kind: string;
  rank: number;
  text: string;
}

export interface Snapshot {
  topic: string;
  partition: number;
  now_ms: number;
  origin_ms: number;
  order: number;
  observed: boolean;
  loaded: boolean;
  spso: number;
  window_end: number;
  log_start: number;
  log_end: number;
  delivery_count_limit: number;
  lock_duration_ms: number;
  runs: Run[];
  past: Run[];
  members: Member[];
  marks: Mark[];
  step: { first: number; text: string } | null;
  text: string;
}

/** One offset. `kind`: run, past, beyond (above the window) or dash (outside the log, or a natural gap). */
export interface Cell {
  offset: number;
  kind: string;
  run: Run | null;
}

export interface Sizes {
  pitch: number;
  pitch_step: number;
  pitch_cells: number;
  pitch_pips: number;
  gap: number;
  cell_top: number;
  cell_height: number;
  glyph: number;
  glyph_width: number;
  letter: number;
  pips: number;
  stripe: number;
  band_above: number;
  band_below: number;
  lane_top: number;
  lane: number;
  lane_bar: number;
  lane_bar_narrow: number;
  digit: number;
  ends_near: number;
  gutter_left: number;
  gutter_right: number;
  gutter_left_narrow: number;
  gutter_right_narrow: number;
  name_right: number;
  narrow: number;
}

export interface Shape {
  fill: string | null;
  stroke: string;
  width: number;
  glyph: string | null;
  ink: string;
  block: number;
}

export interface Look {
  sizes: Sizes;
  shapes: Record<string, Shape>;
  marks: Record<string, string>;
  lock_alarm: number;
  /** Patterns and markers, see shareq_widgets/svg.py; a view gives them names of its own. */
  fills: string;
}

export type Colours = Record<string, string>;

export interface Palette {
  light: Colours;
  dark: Colours;
}

/** The axis of the timeline, ms since the epoch, from `first_ms` to `last_ms`, or a span of it: a fold takes as much room as `folded_ms`. */
export interface TimeAxis {
  start_ms: number;
  end_ms: number;
  origin_ms: number;
  first_ms: number;
  last_ms: number;
  /** The end in words: "now", "the end", or "" if it moves on. */
  present: string;
  folds: [from_ms: number, to_ms: number][];
  folded_ms: number;
}

/** `rate`: journal ms per real ms; `until_ms`: the time at which the clock waits. */
export interface Clock {
  rate: number;
  until_ms: number | null;
}

export type Chip = [before: string, value: string, after: string, hot: boolean];

export interface Words {
  title: string;
  where: string;
  chips: Chip[];
  sentence: [place: string, what: string, why: string, hot: boolean];
  /** Of a strip: the names of the sides of the window, and of the ends of the log; the lanes, the number of further members, and the states of the legend. */
  flags: [low: string, high: string];
  ends: [start: string, end: string];
  lanes: Lane[];
  more: string;
  legend: string[];
}

/** See shareq_widgets/words.py. */
export interface Lane {
  id: string;
  name: [wide: string, narrow: string];
  holds: [wide: string, narrow: string];
  held: number;
  deadline_ms: number | null;
}

export interface Traits {
  snapshot: Snapshot;
  /** The name of the linked views, and the number of the position that they show. A saved page has none. */
  moment?: [key: string, number: number];
  total: number;
  clock: Clock;
  words: Words;
  palette: Palette;
  look: Look;
  playing: boolean;
  speed: number;
  live: boolean;
  internals: boolean;
  axis: TimeAxis;
  running_on: boolean;
  drivable: boolean;
  animate: boolean;
  theme: "auto" | "light" | "dark";
  selection: string;
  drawing: Drawing;
  width: number;
  controls: boolean;
  /** What can be saved and copied: the forms of shareq_widgets/keeping.py. */
  keeps: string[];
  /** What has changed in large traits, see `large` in shareq_widgets/player.py. */
  changes: { snapshot?: Change; drawing?: Change } | null;
}

/** One element of a drawing, see shareq_widgets/drawing.py. */
export interface Element {
  key: string;
  tag: "rect" | "circle" | "line" | "path" | "text";
  attributes: Record<string, string | number>;
  text?: string;
  title?: string;
  style?: string;
  about?: string[];
  part?: string;
  pressed?: boolean;
  reveal?: boolean;
  rates?: Record<string, number>;
  countdown?: number;
  countup?: number;
  along?: string;
}

export interface Brush {
  left: number;
  right: number;
  top: number;
  bottom: number;
  from_ms: number;
  to_ms: number;
}

/** `keys`: those of the elements, in their order. */
export interface Drawing {
  width: number;
  height: number;
  text: string;
  now_ms: number;
  origin_ms: number;
  brush: Brush | null;
  elements: Record<string, Element>;
  keys: string[];
}

/** The response to each command: the time until the next tick, or null. */
export interface Answer {
  next_ms: number | null;
}

/** What Python has made for the shelf of one copy of a view: the line of Python, and a file, whose content is in the buffers; or why not. */
export interface Kept {
  copy: string;
  line?: string;
  refusal?: string;
  file?: string;
  type?: string;
}

export type Message = Answer | { kept: Kept };

/** The part of anywidget's model that the widgets use. */
export interface Model {
  get<Name extends keyof Traits>(name: Name): Traits[Name];
  send(content: { do: string; value: unknown }): void;
  set<Name extends keyof Traits>(name: Name, value: Traits[Name]): void;
  on(event: "msg:custom", callback: (message: Message, buffers: DataView[]) => void): void;
  on(event: `change:${keyof Traits}`, callback: () => void): void;
  off(event: "msg:custom", callback: (message: Message, buffers: DataView[]) => void): void;
  off(event: `change:${keyof Traits}`, callback: () => void): void;
}

/** An output of a cell as nbformat has it. */
export interface Output {
  data?: Record<string, any>;
}

/** The part of JupyterLab's widget manager and document that refresh.js uses; other pages have no context. */
export interface Manager {
  kernel?: {
    iopubMessage: Signal<{ header: { msg_type: string }; parent_header: { msg_type?: string }; content: { execution_state?: string } }>;
    statusChanged: Signal<string>;
    disposed: Signal<unknown>;
  };
  context?: {
    model: { cells: Iterable<NotebookCell>; dirty: boolean };
    saveState: Signal<string>;
    save(): Promise<void>;
  };
}

export interface Signal<Argument> {
  connect(slot: (sender: unknown, argument: Argument) => void): void;
  disconnect(slot: (sender: unknown, argument: Argument) => void): void;
}

export interface NotebookCell {
  sharedModel: {
    getOutputs?(): Output[];
    getMetadata(key: string): any;
    updateOutputs(start: number, end: number, outputs: Output[], origin: string): void;
  };
}

/** The pictures by their MIME types, for a widget's model: of the whole recording, or of what it shows. */
export type Refreshed = [model_id: string, whole: boolean, pictures: Record<string, string>];

export interface RefreshModel {
  widget_manager: Manager;
  send(content: { stores: true } | { wishes: (string | boolean)[][] }): void;
  on(event: "msg:custom", callback: (message: { pictures: Refreshed[] }) => void): void;
  off(event: "msg:custom", callback: (message: { pictures: Refreshed[] }) => void): void;
}

/** See shareq_widgets/changes.py. */
export type Change = null | ["=", any] | ["[", first: number, count: number, items: any[]] | ["{", Record<string, Change>, removed: string[]];

/** What a view shows at one recorded moment; `inner` is the sentence of the single event, if it differs. */
export interface Frame {
  snapshot: Snapshot;
  words: Words;
  inner: Words["sentence"] | null;
  drawing?: Drawing;
}

/** See shareq_widgets/recording.py: one value of each list for a frame. `ends`: 1 where a step ends. */
export interface Recording {
  orders: number[];
  times: number[];
  untils: number[];
  ends: number[];
  changes: Change[];
}

export interface OfflineView {
  kind: string;
  area: string | null;
  traits: Partial<Traits>;
  events: boolean;
  recording: Recording;
}

/** `pace`: the least and the most time that a step is shown, ms. */
export interface Page {
  pace: [least_ms: number, most_ms: number];
  views: OfflineView[];
}

export interface Context {
  model: Model;
  el: HTMLElement;
}

/** A row of the table of commands, see shareq_widgets/commands.py. */
export interface Command {
  value?: string;
  trait?: string;
  keys?: string[];
  text?: string;
  on?: string;
  title?: string;
  choices?: number[];
  moves?: boolean;
  kernel?: boolean;
  page?: boolean;
  strip?: boolean;
}

type With<Column extends string> = { [Name in CommandName]: (typeof TABLE)[Name] extends Record<Column, unknown> ? Name : never }[CommandName];

export type CommandName = keyof typeof TABLE;
export type PageCommand = With<"page">;
export type StripCommand = With<"strip">;
/** The commands that a saved page carries out. */
export type SavedCommand = Exclude<CommandName, With<"kernel"> | PageCommand | StripCommand>;

export type Send = (name: CommandName, value?: unknown) => void;

export type ElementOf<Tag extends string> = Tag extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[Tag]
  : Tag extends keyof SVGElementTagNameMap ? SVGElementTagNameMap[Tag]
  : never;

export type Attribute = string | number | boolean | null | undefined;

/** The rectangle of a canvas in which a block is drawn. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}
