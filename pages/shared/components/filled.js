// A text of the catalogue with its values in the place of their names in braces.
function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}
