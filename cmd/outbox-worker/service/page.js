// Asks for the page again and puts its main part in the place of the old one.
const main = () => document.querySelector("main");
const stale = document.querySelector("#stale");

async function refresh() {
  try {
    // A worker that hangs, or a network that swallows, would be waited for without end.
    const answer = await fetch("/", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(answer.status);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = fresh.title;
    main().replaceWith(document.importNode(fresh.querySelector("main"), true));
    stale.hidden = true;
  } catch {
    stale.hidden = false; // the worker is gone, or restarts
  }
}

// One at a time: an answer that was late must not take the place of a newer one.
function soon() {
  setTimeout(async () => {
    if (!document.hidden) await refresh();
    soon();
  }, 2000);
}
soon();
