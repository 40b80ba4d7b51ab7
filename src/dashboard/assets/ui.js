// What every component takes from the libraries: one place, so that their files can be replaced.

import { h, render, Fragment } from './vendor/preact.js';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from './vendor/preact-hooks.js';
import { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from './vendor/signals.js';
import htm from './vendor/htm.js';

export const html = htm.bind(h);
export {
  batch,
  computed,
  effect,
  Fragment,
  render,
  signal,
  untracked,
  useComputed,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useSignal,
  useSignalEffect,
  useState,
};
