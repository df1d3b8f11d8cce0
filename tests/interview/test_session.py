from __future__ import annotations

import json
from typing import Any

from takopi.interview.session import decode, encode
from tests.interview.given import asking, question

AGREED: dict[str, Any] = {
    "sessionId": "0f3c",
    "chatId": 1001,
    "state": "COLLECTING",
    "task": "add JWT authentication",
    "goal": "jwt-auth",
    "description": "implement-jwt-auth-system",
    "questions": [
        {
            "id": "q1",
            "question": "What framework are you using?",
            "options": [
                {"label": "Express", "value": "express"},
                {"label": "Fastify", "value": "fastify"},
                {"label": "Hono", "value": "hono"},
            ],
            "allowFreeText": True,
            "multiSelect": False,
        }
    ],
    "answers": [None],
    "currentQuestionIndex": 0,
    "planPath": None,
    "createdAt": "2026-02-18T13:18:06Z",
    "updatedAt": "2026-02-18T13:18:06Z",
    "completedQA": [],
    "currentBatchStart": 0,
    "round": 1,
    "context": None,
    "threadId": None,
    "userId": 1001,
}


def test_file_has_the_agreed_keys_and_is_read_back() -> None:
    session = asking(
        question("What framework are you using?", "Express", "Fastify", "Hono", typed=True)
    )
    kept = json.loads(encode(session))
    assert {key: kept[key] for key in AGREED} == AGREED
    assert decode(encode(session)) == session
