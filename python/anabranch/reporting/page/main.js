const timelineData = document.getElementById("timeline-data");
if (timelineData) {
  const chart = new Chart(document.getElementById("timeline"), decodeTimeline(JSON.parse(timelineData.textContent)));
  new Controls(document.getElementById("timeline-controls"), chart);
  new Readout(document.getElementById("timeline-values"), chart);
  new Tip(document.getElementById("timeline-tip"), chart);
  chart.start().then(() => {
    document.documentElement.dataset.timeline = "drawn";
  });
}
