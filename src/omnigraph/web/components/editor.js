/**
 * Owns the editor of texts. It stands in a shadow root: CodeMirror makes styles of its own, which
 * the policy of the page allows only as objects, and so they are made in there.
 */

import {
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  EditorState,
  EditorView,
  highlightSpecialChars,
  history,
  historyKeymap,
  HighlightStyle,
  indentOnInput,
  keymap,
  lineNumbers,
  linter,
  lintKeymap,
  placeholder as placeholderOf,
  setDiagnostics,
  syntaxHighlighting,
  tags,
} from "../vendor/codemirror.js";
import { h } from "../core/dom.js";
import { asProblem } from "../core/problem.js";

const LOOK = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { padding: "10px 0", caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--text-faint)", border: "0" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 8px 0 12px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "var(--accent-soft) !important" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft) !important", outline: "1px solid var(--accent-line)" },
  ".cm-placeholder": { color: "var(--text-faint)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)",
    borderRadius: "8px", boxShadow: "var(--shadow)", overflow: "hidden",
  },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12.5px", maxHeight: "240px" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 10px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent-soft)", color: "var(--text)" },
  ".cm-completionDetail": { color: "var(--text-faint)", fontStyle: "normal" },
  ".cm-diagnostic": { padding: "6px 10px", fontFamily: "var(--font)", fontSize: "13px" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--warn)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "4px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)", textUnderlineOffset: "4px" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)" },
});
const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: tags.typeName, color: "var(--code-type)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.variableName, color: "var(--code-variable)" },
  { tag: tags.meta, color: "var(--code-keyword)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
]);

/** Places in a text as the server counts them, in characters, as JavaScript counts them. */
function placesIn(text) {
  const simple = !/[\ud800-\udbff]/.test(text);
  if (simple) return (place) => Math.min(place, text.length);
  const starts = [0];
  for (const character of text) starts.push(starts.at(-1) + character.length);
  return (place) => starts[Math.min(place, starts.length - 1)];
}

/**
 * `check(text)` promises the diagnostics of the server; `onrun` is for Ctrl-Enter. The name
 * `label` is what a screen reader says.
 */
export function editor({ label, text = "", language, complete, check, onchange, onrun, placeholder, readonly = false }) {
  const host = h("div.editor");
  const root = host.attachShadow({ mode: "open" });
  const run = { key: "Mod-Enter", preventDefault: true, run: () => (onrun?.(), true) };
  const extensions = [
    lineNumbers(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    language,
    syntaxHighlighting(COLOURS),
    LOOK,
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
    EditorState.readOnly.of(readonly),
    EditorState.tabSize.of(4),
    keymap.of([
      run,
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...lintKeymap,
      ...historyKeymap,
      ...defaultKeymap,
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onchange?.(update.state.doc.toString());
    }),
  ];
  if (placeholder) extensions.push(placeholderOf(placeholder));
  if (complete) extensions.push(autocompletion({ override: [complete], icons: false }));
  if (check) extensions.push(linter((view) => underlined(view, check), { delay: 350 }));
  const view = new EditorView({ root, parent: root, state: EditorState.create({ doc: text, extensions }) });
  return {
    element: host,
    view,
    get text() {
      return view.state.doc.toString();
    },
    set text(next) {
      if (next === view.state.doc.toString()) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
    },
    focus: () => view.focus(),
    clearDiagnostics: () => view.dispatch(setDiagnostics(view.state, [])),
    close: () => view.destroy(),
  };
}

async function underlined(view, check) {
  const text = view.state.doc.toString();
  let found;
  try {
    found = await check(text);
  } catch (error) {
    asProblem(error);
    return [];
  }
  const place = placesIn(text);
  return found.map((one) => {
    const from = place(one.span?.start ?? 0);
    const to = Math.max(place(one.span?.end ?? 0), Math.min(from + 1, text.length));
    return {
      from,
      to,
      severity: one.severity === "error" ? "error" : "warning",
      message: [one.message, one.suggestion].filter(Boolean).join(" – "),
    };
  });
}
