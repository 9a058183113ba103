// The commands of the views, of the table that Python reads, too: shareq_widgets/commands.py says what its columns are.

/** @import { Command, CommandName } from "./types.d.ts" */

import TABLE from "../commands.json";

/** @type {Record<CommandName, Command>} */
export const COMMANDS = TABLE;
/** @param {string | null | undefined} name @returns {name is CommandName} */
export const isCommand = (name) => name != null && Object.hasOwn(COMMANDS, name);
/** The rows in the order of the buttons. */
export const ROWS = /** @type {[CommandName, Command][]} */ (Object.entries(COMMANDS));
/** The commands of the keys. */
export const KEYS = new Map(ROWS.flatMap(([name, { keys = [] }]) => keys.map((key) => [key, name])));
