"""The issuer's key is replaced while the APIs serve requests."""

from local_stack import issuer
from test_support.system.clients import Hometown
from test_support.system.stack import Stack


def test_no_api_starts_again_for_a_new_key_of_the_issuer(stack: Stack, hometown: Hometown) -> None:
    before = stack.lives()
    hometown.list_users(limit=1)
    former = issuer.public_keys(stack.folder).read_text()

    stack.make_output("rotate", "what=issuer")

    assert issuer.public_keys(stack.folder).read_text() != former
    with stack.hometown.http as http:
        for tokens in (hometown.tokens, stack.hometown.tokens):
            answer = http.get(
                f"{hometown.addresses['users-api']}/v1/users",
                headers={"Authorization": f"Bearer {tokens['users-api']}"},
            )
            assert answer.is_success, answer.text
    after = stack.lives()
    assert {name: after[name] for name in before if name.endswith("-api")} == {
        name: before[name] for name in before if name.endswith("-api")
    }
