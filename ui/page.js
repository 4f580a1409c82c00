// What a server cannot do for a page: sheets, panels, keys, dropped files, the clipboard, and pointing
// at a passage. Everything is delegated from the document, so it works for HTML that comes later.
() => {
  const root = document.documentElement;
  const find = (selector) => document.querySelector(selector);
  const shell = () => find("#app") ?? root; // what is open is written on it, for the style sheets

  // Light and dark: the system's choice until the person makes one.
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const chosenTheme = () => localStorage.getItem("glassbox_theme");
  const applyTheme = () => {
    const dark = chosenTheme() ? chosenTheme() === "dark" : systemDark.matches;
    document.body.classList.toggle("dark", dark);
    root.classList.toggle("dark", dark);
    root.style.colorScheme = dark ? "dark" : "light";
  };
  systemDark.addEventListener("change", applyTheme);
  applyTheme();

  // One sheet (rail, side) or panel (retrieval, decoding, documents) is open at a time.
  let opener = null;
  const open = (kind, name, from) => {
    const same = shell().dataset[kind] === name;
    delete shell().dataset.sheet;
    delete shell().dataset.panel;
    if (name && !same) {
      shell().dataset[kind] = name;
      opener = from;
      if (kind === "panel") {
        find(`#panel-${name} :is(input, textarea, button)`)?.focus({ preventScroll: true });
        find(`#panel-${name}`).scrollTop = 0;
      }
    }
    syncExpanded();
  };
  const close = () => {
    const wasOpen = shell().dataset.sheet || shell().dataset.panel;
    open("panel", null);
    if (wasOpen && opener?.isConnected) opener.focus();
    return Boolean(wasOpen);
  };
  const syncExpanded = () => {
    for (const chip of document.querySelectorAll("[data-panel]:is(button)")) {
      const expanded = String(chip.dataset.panel === shell().dataset.panel);
      if (chip.getAttribute("aria-expanded") !== expanded) {
        chip.setAttribute("aria-expanded", expanded);
      }
    }
  };

  // A citation points at its passage; the passages of an earlier answer come from the server first.
  let wanted = null;
  const pointAtPassage = () => {
    if (!wanted) return;
    const passage = find(
      `.passages[data-turn="${wanted.turn}"] [data-passage="${wanted.passage}"]`
    );
    if (!passage) return;
    wanted = null;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    passage.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
    passage.focus({ preventScroll: true });
    passage.classList.remove("flash");
    void passage.offsetWidth;
    passage.classList.add("flash");
  };

  // What the person opened stays open when its part of the page is drawn again.
  const opened = new Set();
  const nameOf = (details) =>
    [details.className, ...["turn", "passage"].map((name) =>
      details.closest(`[data-${name}]`)?.dataset[name])].join(" ");
  const rememberOpened = (details) => {
    if (details.open) opened.delete(nameOf(details)); // the click is about to close it
    else opened.add(nameOf(details));
  };
  const keepOpened = () => {
    for (const details of document.querySelectorAll("#app details:not([open])")) {
      if (opened.has(nameOf(details))) details.open = true;
    }
  };

  const copy = async (button) => {
    const scope = button.dataset.copy === "code" ? ".code" : ".reply";
    const part = button.dataset.copy === "code" ? "pre" : ".answer";
    await navigator.clipboard?.writeText(button.closest(scope).querySelector(part).innerText);
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), 1200);
  };

  document.addEventListener("click", (event) => {
    const on = (selector) => event.target.closest?.(selector);
    let button;
    if ((button = on("button[data-sheet]"))) open("sheet", button.dataset.sheet, button);
    else if ((button = on("button[data-panel]"))) open("panel", button.dataset.panel, button);
    else if ((button = on("button[data-copy]"))) copy(button);
    else if (on("button[data-theme]")) {
      localStorage.setItem("glassbox_theme", root.classList.contains("dark") ? "light" : "dark");
      applyTheme();
    } else if ((button = on('button[data-act="language"]'))) {
      const now = find(".header").dataset.language;
      const next = now === "zh" ? "en" : "zh";
      document.cookie = `glassbox_language=${next}; path=/; max-age=31536000; samesite=lax`;
    } else if ((button = on('button[data-act="cite"], button[data-act="show"]'))) {
      wanted = { turn: button.dataset.turn, passage: button.dataset.passage ?? "1" };
      if (innerWidth <= 1100) open("sheet", "side", button);
      pointAtPassage();
    } else if (!on(".popover, #rail, #side") || on('#rail [data-act="open"], #new-chat')) {
      if (shell().dataset.sheet || shell().dataset.panel) open("panel", null);
    }
    if (on("summary")?.parentElement.matches("details")) {
      rememberOpened(on("summary").parentElement);
    }
    if (on("a.skip")) {
      event.preventDefault();
      find("#question textarea")?.focus();
    }
    if (on('[data-act="edit"]')) setTimeout(() => find("#question textarea")?.focus(), 300);
  });

  // Enter sends, Shift+Enter breaks the line, Esc closes what is open or else stops.
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.isComposing) return; // an input method is choosing characters
      if (event.key === "Escape" && !close()) find("#stop, #compare-stop, #ways-stop")?.click();
      if (event.key === "Enter" && event.target.matches?.("#question textarea")) {
        event.stopImmediatePropagation();
        if (event.shiftKey) return;
        event.preventDefault();
        find("#send")?.click();
      }
    },
    true
  );

  // Files dropped anywhere go to the rail's upload.
  const hasFiles = (event) => event.dataTransfer?.types?.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    if (!hasFiles(event) || event.target.closest?.("[data-own-drop]")) return;
    event.preventDefault();
    const input = find("#upload input[type=file], input#upload, #rail input[type=file]");
    if (!input) return;
    // Entries are only there until the event is over; what is in folders is found later.
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.());
    const whole = event.dataTransfer.files;
    if (!entries.some((entry) => entry?.isDirectory)) return give(input, whole);
    Promise.all(entries.map((entry) => (entry ? filesBelow(entry, "") : []))).then((found) => {
      const files = new DataTransfer();
      found.flat().forEach((file) => files.items.add(file));
      if (files.files.length) give(input, files.files);
    });
  });
  // A folder that is chosen: Gradio would forget in which folder of it a file was.
  document.addEventListener("click", (event) => {
    const input = find("#upload input[type=file], input#upload, #rail input[type=file]");
    if (!event.target.closest?.("#upload-folder") || !input) return;
    const chooser = Object.assign(document.createElement("input"), {
      type: "file", webkitdirectory: true,
    });
    chooser.addEventListener("change", () => {
      const files = new DataTransfer();
      for (const file of chooser.files) {
        const way = file.webkitRelativePath;
        if (!way.split("/").slice(1).some((part) => part.startsWith(".")))
          files.items.add(new File([file], way, { type: file.type }));
      }
      if (files.files.length) give(input, files.files);
    });
    chooser.click();
  });
  const give = (input, files) => {
    input.files = files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  };
  // The files of a dropped folder, each named by its way; hidden ones are no documents.
  const filesBelow = async (entry, way) => {
    if (way && entry.name.startsWith(".")) return [];
    const name = way + entry.name;
    if (entry.isFile) {
      const file = await new Promise((found, failed) => entry.file(found, failed));
      return way ? [new File([file], name, { type: file.type })] : [file];
    }
    const reader = entry.createReader();
    const files = [];
    for (;;) {
      const some = await new Promise((found, failed) => reader.readEntries(found, failed));
      if (!some.length) return files;
      for (const child of some) files.push(...(await filesBelow(child, `${name}/`)));
    }
  };

  // Follow the answer unless the person scrolled away; keep what depends on new HTML in step.
  const follow = () => {
    const box = find("#transcript");
    if (box && box.scrollHeight - box.scrollTop - box.clientHeight < 160) {
      box.scrollTop = box.scrollHeight;
    }
  };
  new MutationObserver((changes) => {
    const language = find(".header")?.dataset.language;
    if (language) root.lang = language === "zh" ? "zh-CN" : "en";
    if (changes.some((c) => c.target.closest?.("#live"))) follow();
    pointAtPassage();
    syncExpanded();
    keepOpened();
  }).observe(document.body, {
    childList: true, subtree: true, characterData: true, attributeFilter: ["open"],
  });
};
