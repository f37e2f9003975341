"""JUnit XML: a file is a test suite, a finding a test case.

What fails the run is a failure, what could not be judged an error, what is waived or in the baseline skipped. A finding
below --fail-on passes and says what it is in `system-out`: the consumer's verdict is to be the exit code's.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from vexlint.report.gate import Gate, Told, from_root, sentences, title, told, unsaid
from vexlint.report.text import printable
from vexlint.values import Report


def render(report: Report, gate: Gate) -> str:
    """One document with a `testsuite` for each file, in the report's order."""
    root = Xml.Element("testsuites", name="vexlint")
    for file in report.files:
        suite = Xml.SubElement(root, "testsuite", name=printable(from_root(file.path, gate.root)))
        for entry in told(Report((file,), ()), gate, aside=True):
            _case(suite, entry, gate, file.status == "incomplete" and entry.finding.message == file.reason)
        if reason := unsaid(file):
            Xml.SubElement(_named(suite, "could not be judged"), "error", message=reason).text = reason
        elif not len(suite):
            _named(suite, "no findings")
        _count(suite, [suite])
    _count(root, list(root))
    Xml.indent(root, " ")  # and ASCII: any locale can print it
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root).decode() + "\n"


def _named(suite: Xml.Element, name: str) -> Xml.Element:
    """A test case; some consumers show the class name alone, others the file."""
    path = suite.attrib["name"]
    return Xml.SubElement(suite, "testcase", name=name, classname=path, file=path)


def _case(suite: Xml.Element, entry: Told, gate: Gate, unjudged: bool) -> None:
    finding = entry.finding
    label = finding.place.value or finding.place.name
    case = _named(suite, printable(f"{title(finding)} {label}".rstrip()))
    text = "\n".join(sentences(entry))
    message = f"{finding.severity.value}: {sentences(entry)[0]}"
    if entry.reason:
        Xml.SubElement(case, "skipped", message=entry.reason)
    elif unjudged:
        Xml.SubElement(case, "error", message=message, type=finding.code).text = text
    elif finding.severity.rank >= gate.fail_on.rank:
        Xml.SubElement(case, "failure", message=message, type=finding.code).text = text
    else:
        Xml.SubElement(case, "system-out").text = f"{message}\n{text}"


def _count(element: Xml.Element, suites: list[Xml.Element]) -> None:
    cases = [case for suite in suites for case in suite.iter("testcase")]
    element.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
