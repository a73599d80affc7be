// Reads a JSON object from file name to Bicep text, and prints one from file name to
// syntax tree. infra/tree_test.go asks it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Language, Parser } from "web-tree-sitter";

const require = createRequire(import.meta.url);
await Parser.init();
const parser = new Parser();
parser.setLanguage(await Language.load(require.resolve("tree-sitter-bicep/tree-sitter-bicep.wasm")));

const plain = (node) => ({
  kind: node.type,
  line: node.startPosition.row + 1,
  endLine: node.endPosition.row + 1,
  text: node.text,
  bad: node.isError || node.isMissing,
  children: node.children.map(plain),
});

const trees = {};
for (let [file, text] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  // The grammar has no assignments to parameters; it reads them as variables.
  if (file.endsWith(".bicepparam")) text = text.replace(/^param (\w+) =/gm, "var $1 =");
  trees[file] = plain(parser.parse(text).rootNode);
}
process.stdout.write(JSON.stringify(trees));
