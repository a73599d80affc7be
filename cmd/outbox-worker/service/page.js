// Asks for the page again and puts its main part in the place of the old one.
const main = () => document.querySelector("main");
const stale = document.querySelector("#stale");

async function refresh() {
  try {
    const answer = await fetch("/", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = fresh.title;
    main().replaceWith(document.importNode(fresh.querySelector("main"), true));
    stale.hidden = true;
  } catch {
    stale.hidden = false; // the worker is gone, or restarts
  }
}

setInterval(() => document.hidden || refresh(), 2000);
