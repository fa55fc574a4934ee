// Checks pages of `gcdump report` as a person uses them. See .ci/report.
import { createRequire } from 'node:module';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { tmpdir } from 'node:os';
import { pathToFileURL } from 'node:url';
import assert from 'node:assert/strict';

const args = process.argv.slice(2);
const at = args.indexOf('--pictures');
const pictures = at < 0 ? null : resolve(args.splice(at, 2)[1]);
const puppeteer = createRequire(join(process.env.MODULES, 'package.json'))('puppeteer-core');
const profile = mkdtempSync(join(tmpdir(), 'gcdump-report-'));
const options = { executablePath: process.env.CHROMIUM, headless: true, userDataDir: profile, args: ['--no-sandbox', '--disable-gpu'] };
const browser = await puppeteer.launch(options).catch((e) => {
  console.error(`no browser: ${e.message}`);
  process.exit(3);
});

/** The table in the chapter with this id. */
const rows = (page, id) => page.$$eval(`#${id} tbody tr`, (list) => list.map((r) => [...r.cells].map((c) => c.textContent)));
const visible = (page, id) => page.$$eval(`#${id} tbody tr`, (list) => list.filter((r) => !r.hidden).length);
const number = (text) => Number(text.replace(/,/g, ''));

async function types(page, data) {
  if (!data?.types?.rows.length) return 'no types';
  const shown = await rows(page, 'types');
  const listed = data.types.rows;
  assert.equal(shown.length, listed.length, 'a row for each type');
  const bytes = shown.reduce((sum, r) => sum + number(r[1]), 0);
  assert.equal(bytes + data.types.rest.bytes, data.types.totals.bytes, 'bytes of the rows and of the rest are those of the heap');
  const counts = () => rows(page, 'types').then((list) => list.map((r) => number(r[0])));
  const falls = (list) => list.every((n, i) => i === 0 || list[i - 1] >= n);
  await page.click('#types th:first-child button');
  assert.ok(falls(await counts()), 'a click sorts numbers, the largest first');
  assert.equal(await page.$eval('#types th:first-child', (th) => th.getAttribute('aria-sort')), 'descending');
  await page.focus('#types th:first-child button');
  await page.keyboard.press('Enter');
  assert.ok(falls((await counts()).reverse()), 'Enter on the focused title turns the order round');
  if (listed.length < 12) return `${listed.length} types`;
  await page.type('#types .filter', 'string');
  const left = await visible(page, 'types');
  assert.ok(left < listed.length, 'the filter hides rows');
  assert.equal(left, shown.filter((r) => r.join('').toLowerCase().includes('string')).length);
  return `${listed.length} types`;
}

async function icicle(page, data) {
  const boxes = data?.icicle?.boxes;
  if (!boxes) return 'no icicle';
  const drawn = await page.$$eval('.icicle button', (list) => list.map((b) => [b.offsetLeft, b.offsetTop, b.getBoundingClientRect().width]));
  assert.equal(drawn.length, boxes.length, 'every box is drawn');
  const whole = drawn[0][2];
  boxes.forEach((b, i) => {
    const wanted = (b.retained / boxes[0].retained) * whole;
    assert.ok(Math.abs(drawn[i][2] - wanted) < 4 || wanted < 8, `box ${i} is as wide as what it retains`);
  });
  const inner = boxes.findIndex((b) => b.depth === 1);
  if (inner < 0) return 'one box';
  const box = (await page.$$('.icicle button'))[inner];
  await box.click();
  const width = await box.evaluate((b) => b.getBoundingClientRect().width);
  assert.ok(Math.abs(width - whole) < 2, 'a click makes the box take the whole width');
  await page.keyboard.press('Escape');
  const back = await box.evaluate((b) => b.getBoundingClientRect().width);
  assert.ok(Math.abs(back - drawn[inner][2]) < 2, 'Escape goes back');
  return `${boxes.length} boxes`;
}

let failed = 0;
for (const file of args) {
  const said = [];
  try {
    const text = readFileSync(file, 'utf8');
    assert.ok(Buffer.byteLength(text) < 1_500_000, 'below 1.5 MB');
    const json = /<script type="application\/json" id="data">(.*)<\/script>/.exec(text)?.[1];
    const data = json && JSON.parse(json).data;
    for (const width of [1280, 400]) {
      for (const scheme of ['light', 'dark']) {
        const page = await browser.newPage();
        const bad = [];
        page.on('console', (m) => bad.push(m.text()));
        page.on('pageerror', (e) => bad.push(String(e)));
        page.on('dialog', (d) => { bad.push(`dialog: ${d.message()}`); d.dismiss(); });
        page.on('request', (r) => r.url().startsWith('file:') || bad.push(`request: ${r.url()}`));
        await page.setViewport({ width, height: 900 });
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
        await page.goto(pathToFileURL(resolve(file)).href);
        const [ink, back] = await page.$eval('body', (b) => [getComputedStyle(b).color, getComputedStyle(b).backgroundColor]);
        const light = (c) => c.match(/\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0);
        assert.ok((light(back) > light(ink)) === (scheme === 'light'), `colours for ${scheme}`);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `no sideways scrolling at ${width}`);
        for (const link of await page.$$eval('nav a', (list) => list.map((a) => a.getAttribute('href')))) {
          assert.ok(await page.$(link), `the link ${link} leads somewhere`);
        }
        if (pictures) await page.screenshot({ path: join(pictures, `${basename(file)}-${width}-${scheme}.png`) });
        const facts = [await types(page, data), await icicle(page, data)];
        if (width === 1280 && scheme === 'light') said.push(...facts);
        if (pictures && width === 1280) {
          const drawn = await page.$('#icicle');
          if (drawn) await drawn.screenshot({ path: join(pictures, `${basename(file)}-icicle-${scheme}.png`) });
        }
        assert.deepEqual(bad, [], 'no message, no request');
        await page.close();
      }
    }
    const page = await browser.newPage();
    await page.setJavaScriptEnabled(false);
    await page.goto(pathToFileURL(resolve(file)).href);
    assert.equal(await page.$$eval('h2', (list) => list.every((h) => h.getBoundingClientRect().height > 0)), true, 'readable without script');
    await page.emulateMediaType('print');
    assert.equal(await page.$$eval('nav', (list) => list.every((n) => getComputedStyle(n).display === 'none')), true, 'prints without links');
    const pdf = await page.pdf({ format: 'A4' });
    assert.ok(pdf.length > 1000);
    await page.close();
    console.log(`${basename(file)}: ok, ${Buffer.byteLength(text)} bytes, ${said.join(', ')}`);
  } catch (e) {
    failed += 1;
    console.log(`${basename(file)}: ${e.message}`);
  }
}
await browser.close();
rmSync(profile, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
