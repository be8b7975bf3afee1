// Shared by the components that draw tokens. Token text only ever becomes textContent.

function fillToken(element, token) {
  element.replaceChildren();
  element.classList.add("token");
  element.classList.toggle("special", token.special);
  element.classList.toggle("changed", token.changed);
  element.classList.toggle("unseen", token.unseen);
  const word = document.createElement("span");
  word.className = "word";
  if (token.starts_word) {
    const mark = document.createElement("span");
    mark.className = "mark";
    mark.textContent = "▁";
    mark.setAttribute("aria-hidden", "true");
    word.append(mark);
  }
  const text = document.createElement("bdi");
  text.className = "text";
  text.textContent = token.text;
  word.append(text);
  element.append(word);
  const notes = notesOf(token);
  if (notes.length) element.title = notes.join(" ");
  else element.removeAttribute("title");
}

const MARKS = {
  "<s>": "The start mark: nothing is written yet.",
  "</s>": "The end mark: the text is complete.",
  "<pad>": "Padding: it makes sentences of a batch equally long.",
  "<unk>": "Stands for a word that the model does not know.",
};

function notesOf(token) {
  const notes = token.special && MARKS[token.text] ? [MARKS[token.text]] : [];
  if (token.unseen) notes.push("This word was never seen in training.");
  if (token.read_as) notes.push(`It reads ${token.read_as} instead.`);
  if (token.changed) notes.push(token.note || "Differs from the output it is compared with.");
  return notes;
}

function spoken(token) {
  return [token.text, token.unseen ? "never seen in training" : "", token.read_as ? `read as ${token.read_as}` : "", token.changed ? "changed" : ""]
    .filter(Boolean)
    .join(", ");
}

function setKindColours(element, colours) {
  element.style.setProperty("--kind-light", colours.light);
  element.style.setProperty("--kind-dark", colours.dark);
}

function bytes(text) {
  const characters = atob(text);
  const found = new Uint8Array(characters.length);
  for (let index = 0; index < found.length; index++) found[index] = characters.charCodeAt(index);
  return found;
}
