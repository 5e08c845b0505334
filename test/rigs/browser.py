# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium for tests of pages."""

from contextlib import contextmanager
import os
import shutil
import tempfile
import time

from optional import Optional
import pytest

webdriver = Optional('selenium.webdriver')

# s, timeout of a page, which is drawn slowly without a graphics card.
PATIENCE = 60.0
# Software rendering, running as root, and no network requests of its own.
OPTIONS = ('--headless=new', '--no-sandbox', '--disable-gpu', '--use-angle=swiftshader',
           '--enable-unsafe-swiftshader', '--disable-dev-shm-usage', '--disable-quic',
           '--no-first-run', '--disable-background-networking', '--disable-component-update',
           '--disable-sync')
INSTALL = 'Chromium is missing: sudo apt install chromium chromium-driver'


@contextmanager
def chromium(*more, size=(1100, 700)):
    """Start a browser; if there is none, fail in CI (.ci/run) and skip the test elsewhere."""
    browser, driver = shutil.which('chromium'), shutil.which('chromedriver')
    if not (browser and driver):
        (pytest.fail if os.environ.get('RBD_ROS_NEEDS_BROWSER') else pytest.skip)(INSTALL)
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for option in (*OPTIONS, *more, f'--user-data-dir={folder}',
                       f'--window-size={size[0]},{size[1]}'):
            options.add_argument(option)
        page = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        try:
            yield page
        finally:
            page.quit()


def wait_for(condition, what):
    """Return the first true result of a function."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.1)
    raise AssertionError(f'the page does not show {what} within {PATIENCE} s')


def labelled(page, label, number=0):
    """Return the input with a label, which may occur several times."""
    labels = wait_for(lambda: page.find_elements('xpath', f"//label[.='{label}']")[number:],
                      label)
    return page.find_element('id', labels[0].get_attribute('for'))


def _stands(element):
    """Return whether an element stays where it is for a fifth of a second."""
    place = element.rect
    time.sleep(0.2)
    return element.rect == place


def drag_slider(page, label, pixels, number=0):
    """Drag a slider with the mouse, and return its value."""
    slider = labelled(page, label, number)
    thumb = slider.find_element('css selector', '[role=slider]')
    before = thumb.get_attribute('aria-valuenow')
    # Sliders move while their folder opens.
    wait_for(lambda: _stands(thumb), f'{label} at rest')
    webdriver.ActionChains(page).drag_and_drop_by_offset(thumb, pixels, 0).perform()
    return float(wait_for(lambda: thumb.get_attribute('aria-valuenow') != before
                          and thumb.get_attribute('aria-valuenow'), f'another {label}'))


def click(page, path):
    wait_for(lambda: page.find_elements('xpath', path), path)[-1].click()


def table(page):
    """Return the cells of the tables of torques by joint and title."""
    found = {}
    for head, *rows in page.execute_script(
            "return [...document.querySelectorAll('.rbd table')].map(table => "
            '[...table.rows].map(row => [...row.cells].map(cell => cell.textContent)))'):
        for name, *cells in rows:
            found.setdefault(name, {}).update(
                zip((title.removeprefix('■ ').replace('\xa0', ' ') for title in head[1:]), cells))
    return found


def complaints(page):
    """Return the errors of the page."""
    return [entry['message'] for entry in page.get_log('browser') if entry['level'] == 'SEVERE']
