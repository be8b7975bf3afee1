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
  "<s>": SAID.tokens.start,
  "</s>": SAID.tokens.end,
  "<pad>": SAID.tokens.padding,
  "<unk>": SAID.tokens.unknown,
};

function notesOf(token) {
  const notes = token.special && MARKS[token.text] ? [MARKS[token.text]] : [];
  if (token.unseen) notes.push(SAID.tokens.unseen);
  if (token.read_as) notes.push(filled(SAID.tokens.read_as, { token: token.read_as }));
  if (token.changed) notes.push(token.note || SAID.tokens.changed);
  return notes;
}

function spoken(token) {
  const unseen = token.unseen && SAID.tokens.say_unseen;
  const read = token.read_as && filled(SAID.tokens.say_read_as, { token: token.read_as });
  return [token.text, unseen, read, token.changed && SAID.tokens.say_changed]
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
