"""An interview in three rounds. What is asked last depends on what was said before.

With new clients every answer starts `interview` anew, and questions that have been answered are answered again at once. It has to
ask the same things in the same order then, so all that decides about a question is the topic and the answers before it.
"""

import json

from componentize_py_types import Err
from wit_world.imports import elicit
from wit_world.imports.content import Block_Text, Content, TextBlock
from wit_world.imports.questions import Elicited_Accepted, Error_Unsupported


class Stopped(Exception):
    """The user wants no more questions."""


def ask(key: str, message: str, fields: dict) -> dict:
    """Shows a form in which every field must be filled in, and returns what the user wrote."""
    form = {"type": "object", "properties": fields, "required": list(fields)}
    try:
        answer = elicit.ask(key, message, json.dumps(form))
    except Err as error:
        if isinstance(error.value, Error_Unsupported):
            raise Err("this client cannot ask its user anything") from error
        raise Err(error.value.value) from error
    match answer:
        case Elicited_Accepted(content):
            return json.loads(content)
        case _:
            raise Stopped


def rounds(topic: str):
    """Asks one question after the other, and yields what the user wrote each time."""
    person = ask(
        "person",
        f"May I ask you about {topic}? First: who are you?",
        {"name": {"type": "string", "title": "Your name", "minLength": 1}},
    )
    yield person

    opinion = ask(
        "opinion",
        f"Thank you, {person['name']}. How much do you like {topic}?",
        {"rating": {"type": "integer", "title": "From 1, not at all, to 5, very much", "minimum": 1, "maximum": 5}},
    )
    yield opinion

    question = "What is best about it?" if opinion["rating"] > 3 else "What should be better?"
    yield ask("reason", question, {"reason": {"type": "string", "title": "In a sentence or two"}})


def told(topic: str, said: dict) -> str:
    if not said:
        return "The user does not want to be asked."
    return "\n".join([f"Interview about {topic}:", *(f"- {field}: {answer}" for field, answer in said.items())])


class WitWorld:
    def interview(self, topic: str) -> Content:
        if not topic.strip():
            raise Err("an interview needs a topic")
        said = {}
        try:
            for answers in rounds(topic):
                said |= answers
        except Stopped:
            pass
        return Content([Block_Text(TextBlock(told(topic, said), None))], json.dumps(said) if said else None)
