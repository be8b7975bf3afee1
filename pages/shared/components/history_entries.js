// Leaves one entry in the browser's history for each page that is opened, and for each change of a visitor there.
// Streamlit adds one for every change of the address, so also where a page completes its own as it opens: Back would
// then lead to the page that one is on.

function keepOneEntry() {
  if (history.pushState.keepsOneEntry) return; // a script that is loaded again finds it done
  const push = history.pushState.bind(history);
  let isSettled = false; // the page has come to rest since it was opened
  let isTouched = false; // and a visitor has touched it since
  let wentBack = false; // by Back or Forward, and nothing was touched since
  let last = null; // the change of the address since the last touch, on the page as it is
  const begin = (back) => ([isSettled, isTouched, wentBack, last] = [false, false, back, null]);
  const touch = () => {
    isSettled ||= isAtRest();
    [isTouched, wentBack, last] = [isSettled, false, null];
  };
  // An assistive technology clicks without a pointer and without a key.
  for (const kind of ["pointerdown", "keydown", "input", "click"]) addEventListener(kind, touch, true);
  addEventListener("popstate", () => begin(true));

  // The first change after a touch is the visitor's; all others are the page's own.
  const change = (state, unused, url, search) => {
    const isPushed = isTouched && !last;
    last = { search, before: last?.before ?? location.href, isPushed: isPushed || Boolean(last?.isPushed) };
    if (isPushed) push(state, unused, url);
    else history.replaceState(state, unused, url);
  };

  // On a busy machine the query of the new page comes before its path: the page that is left gives it back. After two
  // steps back at once, the page of the first comes when the browser is at the second.
  const open = (state, unused, url, search) => {
    const isEarly = last?.search === search;
    if (isEarly && !last.isPushed) history.replaceState(state, unused, last.before);
    if (wentBack || (isEarly && last.isPushed)) history.replaceState(state, unused, url);
    else push(state, unused, url);
    begin(wentBack);
  };

  history.pushState = (state, unused, url) => {
    const { pathname, search } = new URL(url ?? "", location);
    (pathname === location.pathname ? change : open)(state, unused, url, search);
  };
  history.pushState.keepsOneEntry = true;
}

function isAtRest() {
  const state = document.querySelector("[data-testid=stApp]")?.dataset.testScriptState;
  return !state || state === "notRunning";
}
