// The form of a new training.

import { element, say } from "./element.js";
import * as service from "./service.js";

const EXAMPLE = `{
  "batch_size": 256,
  "epochs": 20,
  "learning_rate": 0.001,
  "accelerator": "auto"
}`;

export function newTraining(facts, after) {
  const name = element("input", { required: true, maxlength: 200, value: "" });
  const recipe = element("select", {}, ...facts.recipes.map((one) =>
    element("option", { value: one, selected: one === facts.default }, one)));
  const datasets = element("input", { placeholder: "all rows" });
  const config = element("textarea", { spellcheck: false });
  config.value = EXAMPLE;
  const wrong = element("p", { class: "action failed full", role: "alert", hidden: true });
  const form = element("form", { class: "new", hidden: true, onsubmit: async (event) => {
    event.preventDefault();
    wrong.hidden = true;
    try {
      const settings = JSON.parse(config.value);
      const ids = datasets.value.split(",").map((one) => one.trim()).filter(Boolean);
      if (ids.length > 0) settings.dataset_ids = ids;
      const made = await service.submit({ job_name: name.value, recipe: recipe.value,
        config: settings });
      const unused = made.mapped.filter((key) => key.settings.length === 0);
      say(`Queued ${made.job_name}` + (made.jobs ? ` as ${made.jobs.length} jobs` : "") +
        (unused.length > 0 ? `; not used: ${unused.map((key) => key.key).join(", ")}` : ""));
      form.hidden = true;
      after();
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
    }
  } },
  element("label", {}, "Name", name), element("label", {}, "Recipe", recipe),
  element("label", {}, "Data sets, separated by commas", datasets),
  element("label", { class: "full" }, "Settings (JSON; a list of values makes a sweep)", config),
  wrong, element("div", { class: "full" },
    element("button", { type: "submit", class: "first" }, "Queue the training")));
  return form;
}
