"""Signatures of webhooks, as those make them who send one."""
import base64
import hashlib
import hmac
import secrets
import time

WEBHOOK_SECRET = "whsec_" + base64.b64encode(b"a secret of the tests, 32 bytes.").decode()


def sign_standard(body, secret=WEBHOOK_SECRET, delivery=None, at=None):
    """Headers of the Standard Webhooks convention."""
    delivery, at = delivery or "msg_" + secrets.token_hex(8), str(int(at if at is not None else time.time()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"{delivery}.{at}.".encode() + body, hashlib.sha256).digest()
    return {"webhook-id": delivery, "webhook-timestamp": at, "webhook-signature": "v1," + base64.b64encode(mac).decode()}


def sign_github(body, secret=WEBHOOK_SECRET, delivery=None, event="push"):
    mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-GitHub-Delivery": delivery or secrets.token_hex(16), "X-GitHub-Event": event, "X-Hub-Signature-256": "sha256=" + mac}
