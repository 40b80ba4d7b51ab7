// The login: a token, or in an open lab a name.

import { html, signal } from '../ui.js';
import { navigate, route } from '../route.js';
import { me, postJson } from '../api.js';
import { restartLive } from '../live.js';
import { Problem, Title } from '../components/parts.js';

const problem = signal(null);
const busy = signal(false);

/** Where to go afterwards: only into the pages. */
function next() {
  const to = route.value.query.get('next') ?? '';
  return to.startsWith('/ui/') && !to.startsWith('/ui/login') ? to : '/ui/';
}

async function logIn(event) {
  event.preventDefault();
  const said = new FormData(event.target);
  const token = said.get('token').trim();
  const name = said.get('my_account').trim();
  busy.value = true;
  problem.value = null;
  try {
    me.value = await postJson('/scheduler/v1/login', token ? { token } : { my_account: name });
    restartLive();
    navigate(next(), { replace: true });
  } catch (error) {
    problem.value = error;
  } finally {
    busy.value = false;
  }
}

export default function Login() {
  return html`<${Title}>Log in</${Title}><${Problem} error=${problem.value} /><form onSubmit=${logIn}>
    <label class="field"><span>Token of your account</span><input name="token" type="password" autocomplete="current-password" autofocus /></label>
    <p class="faint">In an open lab there are no tokens. Say the name that your jobs have:</p><label class="field"><span>Name, in an open lab</span>
        <input name="my_account" autocomplete="username" /></label>
    <button class="primary" disabled=${busy.value}>Log in</button></form>`;
}
