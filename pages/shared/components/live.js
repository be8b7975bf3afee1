// Keeps a component on a stream: what the server sends for its part is drawn at once, and the page is not run again.
// `data.live` is {address, part, step}: the page's own data stand until the stream has newer ones. All components of a
// page share one connection, which is closed while the page is hidden. When the run is over, the component whose part
// is the state reports it, so that the page runs once more.
const AGAIN_MS = [300, 1000, 3000, 10000];
const GONE = 4404;

function live(render) {
  return (args) => {
    const root = args.parentElement.querySelector(".root");
    const wanted = args.data.live;
    const seat = (root._seat ??= { address: null });
    seat.args = args;
    if (seat.address !== (wanted?.address ?? null)) {
      seat.stream?.members.delete(seat);
      seat.address = wanted?.address ?? null;
      seat.stream = wanted ? streamAt(wanted.address) : null;
      seat.stream?.members.add(seat);
    }
    seat.part = wanted?.part;
    seat.draw = () => {
      const streamed = seat.stream?.parts[seat.part];
      const newer = streamed && streamed.step >= seat.args.data.live.step;
      const waits = !newer && Boolean(seat.args.data.live?.waits);
      root.style.opacity = waits ? "0.3" : ""; // what still stands there is another run's
      if (waits) return;
      render(newer ? { ...seat.args, data: { ...streamed, live: seat.args.data.live } } : seat.args);
    };
    seat.draw();
    return () => {
      seat.stream?.members.delete(seat);
      root._seat = null;
    };
  };
}

function streamAt(address) {
  const streams = (window._attentionLabStreams ??= new Map());
  if (!streams.has(address)) streams.set(address, openStream(address, streams));
  return streams.get(address);
}

function openStream(address, streams) {
  const stream = { members: new Set(), parts: {}, changed: new Set() };
  let socket = null;
  let tries = 0;
  let frame = 0;
  const connect = () => {
    if (socket || document.hidden) return;
    socket = new WebSocket(new URL(address, location.href.replace(/^http/, "ws")));
    socket.onmessage = ({ data }) => {
      tries = 0;
      for (const [part, changes] of Object.entries(JSON.parse(data))) {
        if (part === "over") report(changes);
        else stream.parts[part] = { ...stream.parts[part], ...changes };
        stream.changed.add(part);
      }
      frame ||= requestAnimationFrame(draw);
    };
    socket.onclose = ({ code }) => {
      socket = null;
      if (code === GONE || !stream.members.size) return;
      setTimeout(connect, AGAIN_MS[Math.min(tries++, AGAIN_MS.length - 1)]);
    };
  };
  const draw = () => {
    frame = 0;
    for (const seat of stream.members) if (stream.changed.has(seat.part)) seat.draw();
    stream.changed.clear();
  };
  const report = (state) => {
    for (const seat of stream.members) if (seat.part === "state") seat.args.setTriggerValue("over", state);
  };
  // Components leave and come within a moment while a page runs again: the connection outlives that.
  const look = setInterval(() => {
    if (stream.members.size && !document.hidden) return connect();
    stream.idle = stream.members.size ? 0 : (stream.idle ?? 0) + 1;
    if (!document.hidden && stream.idle < 2) return;
    socket?.close();
    if (stream.members.size) return;
    clearInterval(look);
    streams.delete(address);
  }, 1000);
  connect();
  return stream;
}
