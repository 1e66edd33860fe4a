(() => {
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const slider = document.getElementById("frame");
const at = document.getElementById("at");
const play = document.getElementById("play");
const metric = document.getElementById("metric");
const videos = [...document.querySelectorAll("video")];
const readouts = [...document.querySelectorAll("[data-readout]")];
const drawings = [...document.querySelectorAll("[data-time]")];
const words = { g: "good", l: "lost", t: "late", u: "undecodable" };
const digits = { psnr_db: 2, ssim: 4, vqm: 3, vmaf: 1 };
const units = { psnr_db: " dB", ssim: "", vqm: "", vmaf: "" };
const names = { psnr_db: "PSNR", ssim: "SSIM", vqm: "VQM", vmaf: "VMAF" };
let frame = 0;

// Beginning of a frame in seconds, and the frame that is shown at a time. A clip whose rate varies has a table.
const begin = (number) => (data.times ? data.times[number] : number / data.rate);
function frameAt(seconds) {
  if (!data.times) return Math.floor(seconds * data.rate);
  let [low, high] = [0, data.frames];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (data.times[middle] <= seconds + 1e-6) low = middle; else high = middle;
  }
  return low;
}

const marks = drawings.map((drawing) => {
  const mark = document.createElement("div");
  mark.className = "mark";
  drawing.append(mark);
  return mark;
});

for (const video of videos) {
  const text = atob(document.getElementById(`clip-${video.dataset.clip}`).textContent);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  video.src = URL.createObjectURL(new Blob([bytes], { type: "video/mp4" }));
}

function describe(clip) {
  const fate = clip.fates[frame];
  const shown = clip.shown[frame];
  const values = clip.values[metric.value];
  const quality = values ? `, ${names[metric.value]} ${values[frame].toFixed(digits[metric.value])}${units[metric.value]}` : "";
  const instead = shown === frame ? "" : shown < 0 ? ", black is shown" : `, frame ${shown} is shown`;
  return `${words[fate]}${instead}${quality}`;
}

function draw() {
  const place = `${(100 * (frame + 0.5)) / data.frames}%`;
  for (const mark of marks) mark.style.left = place;
  slider.value = frame;
  slider.setAttribute("aria-valuetext", `frame ${frame}`);
  at.value = `${frame} (${data.types[frame]}), ${begin(frame).toFixed(2)} s`;
  readouts.forEach((readout, index) => { readout.textContent = describe(data.clips[index]); });
}

function seek(next) {
  frame = Math.min(Math.max(Math.round(next), 0), data.frames - 1);
  // The middle of a frame, so that rounding gives no other.
  for (const video of videos) video.currentTime = (begin(frame) + begin(frame + 1)) / 2;
  draw();
}

function stop() {
  for (const video of videos) video.pause();
  play.textContent = "Play";
  play.setAttribute("aria-pressed", "false");
}

function follow() {
  const first = videos[0];
  if (play.getAttribute("aria-pressed") !== "true") return;
  frame = Math.min(frameAt(first.currentTime), data.frames - 1);
  for (const video of videos.slice(1)) {
    if (Math.abs(video.currentTime - first.currentTime) > 0.1) video.currentTime = first.currentTime;
  }
  draw();
  if (first.ended) { stop(); return; }
  requestAnimationFrame(follow);
}

play.addEventListener("click", () => {
  if (play.getAttribute("aria-pressed") === "true") { stop(); seek(frame); return; }
  if (frame >= data.frames - 1) seek(0);
  play.textContent = "Pause";
  play.setAttribute("aria-pressed", "true");
  Promise.all(videos.map((video) => video.play())).then(follow, stop);
});

slider.addEventListener("input", () => { stop(); seek(Number(slider.value)); });
metric.addEventListener("change", () => {
  for (const row of document.querySelectorAll("[data-metric]")) row.hidden = row.dataset.metric !== metric.value;
  draw();
});

for (const drawing of drawings) {
  const to = (event) => {
    const box = drawing.getBoundingClientRect();
    stop();
    seek(((event.clientX - box.left) / box.width) * data.frames - 0.5);
  };
  drawing.addEventListener("pointerdown", (event) => { drawing.setPointerCapture(event.pointerId); to(event); });
  drawing.addEventListener("pointermove", (event) => { if (event.buttons & 1) to(event); });
}

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
  const step = event.shiftKey ? Math.max(Math.round(data.rate), 1) : 1;
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  event.preventDefault();
  stop();
  seek(frame + (event.key === "ArrowRight" ? step : -step));
});

seek(0);
document.documentElement.dataset.ready = "";
})();
