// The form that answers a question as `attnbench advise` does. `advised` is the rule of advice/choosing.py, in its words.
const listed = (names, most) => names.slice(0, most).join(', ') + (names.length > most ? ` and ${names.length - most} more` : '');
const fits = (standing, limit) => limit === null ? '' : !standing.memory ? 'unknown' : standing.memory[1] <= limit ? 'within' : standing.memory[0] > limit ? 'over' : 'undecided';

// Returns {text, verdict, lines, undecided, left, rests} of a question {mode, causal, length, limit, task}: limit null or a name such as '64M', task '' for none.
function advised(advice, question) {
  const task = advice.tasks.find(t => t.word === question.task) || null, implied = !question.causal && task && question.mode !== 'decode' ? task.implied : '';
  const causal = question.causal || question.mode === 'decode' || implied !== '';
  const place = advice.places.find(p => p.mode === question.mode && p.causal === causal), at = place && place.lengths.find(l => l.length === question.length);
  if (!at) return null;
  const limit = question.limit === null ? null : advice.limits.find(([name]) => name === question.limit)[1], limitText = advice.limit_texts[question.limit];
  const own = task ? task.masks[Number(causal)] : null, all = standingsOf(at, own, task), exact = all.find(s => s.time === 'exact');
  const over = all.filter(s => fits(s, limit) === 'over'), losing = all.filter(s => s.score === 'loses' && !over.includes(s));
  let left = all.filter(s => !over.includes(s) && !losing.includes(s));
  const noExact = exact !== undefined && !left.includes(exact), slower = noExact ? [] : left.filter(s => s.time === 'slower');
  left = left.filter(s => !slower.includes(s));
  const sure = s => ['', 'within'].includes(fits(s, limit)) && ['', 'keeps'].includes(s.score);
  const taken = left.filter(s => sure(s) && (s.time === 'faster' || (noExact && s.ratio !== null)));
  const beats = new Set(at.beats.map(String)), beaten = s => taken.some(o => beats.has(`${o.number},${s.number}`));
  let lines = taken.map(standing => ({place: beaten(standing) ? 2 : 1, standing})).sort((a, b) => a.place - b.place || a.standing.high - b.standing.high || (a.standing.label < b.standing.label ? -1 : 1));
  const reasons = unsure => undecided(at, own, task, unsure, noExact, limit);
  let open = reasons(left.filter(s => !taken.includes(s) && s !== exact)), verdict = lines.length ? 'take' : 'undecided';
  if (!lines.length && left.includes(exact) && !open.length && (slower.length || over.length || losing.length)) {
    if (sure(exact)) [lines, verdict] = [[{place: 1, standing: exact}], 'exact'];
    else open = reasons([exact]);
  }
  if (!lines.length && !left.length && !at.fault && all.length) verdict = 'none';
  const told = [at.where, ...(limit === null ? [] : [`within ${limitText}`]), ...(task ? [`for ${task.word}`] : [])].join(', ');
  const first = verdict === 'take' && lines.filter(l => l.place === 1).length > 1 ? 'any' : verdict;
  const names = (all, most = advice.named) => listed(all, most);
  return {
    verdict, text: `${told}${implied}: ${advice.verdicts[first]}`,
    lines: lines.slice(0, 3).map(({place, standing: s}) => `${place}. ${s.label}: ${[s.texts[0], s.texts[1], s.scoreText, s.texts[2]].filter(Boolean).join('; ')}`),
    more: names(lines.slice(3).map(l => `${l.place}. ${l.standing.label}`)),
    undecided: open.map(o => `undecided: ${o.reason}` + (o.standings.length ? `: ${names(o.standings.map(s => s.point))}` : '')),
    left: [over.length && `left out, over ${limitText}: ${names(over.map(s => s.over))}`, losing.length && `${advice.losing}: ${names(losing.map(s => `${s.label} (${s.scoreText})`), 3)}`,
      slower.length && lines.length && `${advice.slower}: ${names(slower.map(s => s.point))}`].filter(Boolean),
    rests: `rests on ${[at.rests, own && own.rests].filter(Boolean).join('; ') || 'no row'}`,
  };
}
const order = (a, b) => { // exact attention is 1, what has no time comes last, then names
  const [x, y] = [a, b].map(s => s.time === 'exact' ? 1 : s.ratio === null ? Infinity : s.ratio);
  return x < y ? -1 : x > y ? 1 : a.label < b.label ? -1 : a.label > b.label ? 1 : 0;
};
function standingsOf(at, own, task) { // joined with the scores of the task
  const scored = label => !task ? ['', '', ''] : own.scores[label] || ['unknown', own.unknown, own.unknown];
  const whole = (s, number) => { const [score, whyScore, scoreText] = scored(s.label); return {...s, number, score, whyScore, scoreText}; };
  const known = new Set(at.standings.map(s => s.label)), others = task ? Object.keys(own.scores).filter(label => !known.has(label)) : [];
  const untimed = label => ({label, time: 'unknown', why: at.unknown, ratio: null, high: null, memory: null, why_memory: 'its memory was not measured', texts: [at.unknown, 'memory not measured', ''], point: label, over: label});
  return [...at.standings.map(whole), ...others.map(label => whole(untimed(label), -1))].sort(order);
}
function undecided(at, own, task, unsure, noExact, limit) {
  if (at.fault) return [{what: 'question', reason: at.fault, standings: []}];
  if (task && !own.learned) return [{what: 'question', reason: own.faults, standings: unsure.filter(s => s.time === 'faster')}];
  const found = new Map(), add = (what, reason, s) => { const key = `${what}\n${reason}`; found.set(key, [...(found.get(key) || []), s]); };
  for (const s of unsure) {
    if (['undecided', 'unknown'].includes(s.time) && !(noExact && s.ratio !== null)) add('time', s.why, s);
    else if (!['', 'keeps'].includes(s.score)) add('score', s.whyScore, s);
    else if (!['', 'within'].includes(fits(s, limit))) add('memory', s.why_memory, s);
  }
  const rank = ['time', 'score', 'memory'], late = o => Number(o.standings.every(s => s.time === 'unknown'));
  return [...found].map(([key, standings]) => { const [what, reason] = key.split('\n'); return {what, reason, standings}; })
    .sort((a, b) => late(a) - late(b) || rank.indexOf(a.what) - rank.indexOf(b.what) || (a.reason < b.reason ? -1 : a.reason > b.reason ? 1 : 0));
}

class Advice {
  constructor(advice) {
    this.advice = advice;
    const first = advice.places[0], modes = [...new Map(advice.places.map(p => [p.mode, p.title]))];
    this.mode = this.select('mode', 'Mode', modes);
    this.causal = this.select('causal', 'Mask', [['false', 'not causal'], ['true', 'causal']]);
    this.length = this.select('length', 'Length, tokens', []);
    this.limit = this.select('memory', 'Memory, at most', [['', 'any'], ...advice.limits.map(([name]) => [name, advice.limit_texts[name]])]);
    this.task = this.select('task', 'Task, or kind of task', [['', 'none: scores are not weighed'], ...advice.tasks.map(t => [t.word, t.word])]);
    this.answer = element('div', {class: 'answer', role: 'status'});
    const form = element('form', {class: 'choices', 'aria-label': 'A question'}, ...[this.mode, this.causal, this.length, this.limit, this.task].map(f => f.parentNode));
    form.addEventListener('submit', e => e.preventDefault());
    this.root = element('section', {id: 'advice', 'aria-labelledby': 'advice-title'}, element('h2', {id: 'advice-title'}, 'Which variant to take'),
      element('p', {}, 'What these rows say to a question, with 95\u202f% intervals, and what they leave undecided: as attnbench advise does, at the lengths that were measured.'), form, this.answer);
    [this.mode.value, this.causal.value] = [first.mode, String(first.causal)];
    this.renew();
  }
  select(name, text, options) {
    const made = element('select', {name: `advice-${name}`, onchange: () => this.renew()}, ...options.map(([value, title]) => element('option', {value}, title)));
    element('label', {}, text, made);
    return made;
  }
  get question() {
    return {mode: this.mode.value, causal: this.causal.value === 'true', length: Number(this.length.value), limit: this.limit.value || null, task: this.task.value};
  }
  renew() {
    const {mode, causal, task} = this.question, implied = task && this.advice.tasks.find(t => t.word === task).implied;
    const place = this.advice.places.find(p => p.mode === mode && p.causal === (causal || mode === 'decode' || Boolean(implied)));
    const lengths = place ? place.lengths.map(l => l.length) : [], now = Number(this.length.value);
    if (String(lengths) !== String([...this.length.options].map(o => Number(o.value)))) {
      this.length.replaceChildren(...lengths.map(n => element('option', {value: n}, String(n))));
      if (lengths.length) this.length.value = lengths.includes(now) ? now : lengths[lengths.length - 1];
    }
    const found = place && advised(this.advice, this.question), line = (text, kind) => element('p', kind ? {class: kind} : {}, text);
    if (!found) return this.answer.replaceChildren(line('undecided: these rows have no time of this mode under this mask', 'verdict'));
    const more = found.more ? [line(`and ${found.more}`, 'quiet')] : [];
    return this.answer.replaceChildren(line(found.text, 'verdict'), ...found.lines.map(t => line(t, 'line')), ...more, line(found.rests, 'quiet'),
      ...[...found.undecided, ...found.left].map(t => line(t, 'quiet')), element('p', {class: 'quiet'}, 'The same, and what to run where it is undecided: ', element('code', {}, this.command())));
  }
  command() {
    const {mode, causal, length, limit, task} = this.question;
    return [this.advice.command, `--length ${length}`, `--mode ${mode}`, causal && mode !== 'decode' && '--causal', limit && `--memory ${limit}`, task && `--task ${task}`].filter(Boolean).join(' ');
  }
}
