"""rag.readers.eml: what a reader of the e-mail sees; CASES 1, 3 and 6."""

from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

import pytest

from rag.documents import Document, load_document
from rag.sandbox import parse_in_sandbox
from tests.office_files import code_of

HEADERS = {
    "Subject": "Lease of the flat",
    "From": "Ada Lovelace <ada@example.org>",
    "To": "Bob <bob@example.org>, carol@example.org",
    "Date": "Tue, 05 Mar 2024 14:02:11 +0100",
}
HEAD = (
    "Lease of the flat\n\nFrom: Ada Lovelace <ada@example.org>\n"
    "To: Bob <bob@example.org>, carol@example.org\nDate: 2024-03-05 14:02+01:00"
)


def mail(text: str = "", html: str = "", **headers: str) -> EmailMessage:
    message = EmailMessage()
    for name, value in (HEADERS | headers).items():
        message[name] = value
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    return message


def read(message: EmailMessage | bytes, folder: Path, name: str = "a.eml") -> Document:
    data = message if isinstance(message, bytes) else message.as_bytes(policy=SMTP)
    (folder / name).write_bytes(data)
    return load_document(folder / name)


def raw(subject: bytes, body: bytes, *headers: bytes) -> bytes:
    lines = [b"From: a@b.c", b"Subject: " + subject, *headers, b"", body]
    return b"\r\n".join(lines)


def test_the_subject_is_the_heading_and_the_headers_are_text(tmp_path: Path) -> None:
    document = read(mail("The notice period is one month.\n\nAda"), tmp_path)
    assert document.text == f"{HEAD}\n\nThe notice period is one month.\n\nAda"
    assert [section.heading for section in document.sections] == [("Lease of the flat",)]
    assert document.media_type == "message/rfc822"
    assert parse_in_sandbox(tmp_path / "a.eml") == document


def test_plain_text_is_preferred_unless_it_is_empty(tmp_path: Path) -> None:
    html = "<h1>Big</h1><p>from <b>HTML</b></p><p hidden>obey</p>"
    assert read(mail("from text", html), tmp_path).text == f"{HEAD}\n\nfrom text"
    assert read(mail(" \n", html), tmp_path).text == f"{HEAD}\n\nBig\n\nfrom HTML"


def test_a_table_in_an_html_mail_has_rows_with_headings(tmp_path: Path) -> None:
    html = "<table><tr><th>Item<th>Sum<th>Tax<tr><td>Tea<td>5<td>1</table>"
    assert read(mail("", html), tmp_path).text.endswith("Item: Tea; Sum: 5; Tax: 1")


@pytest.mark.parametrize("charset", ["gb2312", "gbk", "gb18030", "big5", "utf-8"])
def test_chinese_subjects_and_texts_are_read_in_every_encoding(
    tmp_path: Path, charset: str
) -> None:
    message = EmailMessage()
    message.set_content("困惑度可以找到\n", charset=charset)
    data = message.as_bytes().split(b"\n\n", 1)
    subject = "房屋合同".encode(charset)
    import base64

    encoded = b"=?%s?B?%s?=" % (charset.encode(), base64.b64encode(subject))
    document = read(b"Subject: " + encoded + b"\n" + b"\n\n".join(data), tmp_path)
    assert document.text == "房屋合同\n\n困惑度可以找到"


@pytest.mark.parametrize("encoding", ["gbk", "utf-8"])
def test_bytes_without_a_declared_encoding_are_read_all_the_same(
    tmp_path: Path, encoding: str
) -> None:
    subject, body = "关于房屋合同的问题", "这里的中文没有说明编码。"
    document = read(raw(subject.encode(encoding), body.encode(encoding)), tmp_path)
    assert document.text == f"{subject}\n\nFrom: a@b.c\n\n{body}"
    wrong = b"Content-Type: text/plain; charset=iso-8859-1x"
    assert body in read(raw(b"x", body.encode(encoding), wrong), tmp_path).text


def test_an_encoded_subject_in_several_words_is_joined(tmp_path: Path) -> None:
    message = mail("text", Subject="关于房屋租赁合同通知期限的几个问题，" * 4)
    assert read(message, tmp_path).text.startswith(
        "关于房屋租赁合同通知期限的几个问题，" * 4 + "\n"
    )


def test_attachments_are_named_and_not_read(tmp_path: Path) -> None:
    message = mail("See below.")
    message.add_attachment(
        b"%PDF-1.4 secret", maintype="application", subtype="pdf", filename="合同.pdf"
    )
    message.add_attachment("a,b", subtype="csv", filename="../../rows.csv")
    document = read(message, tmp_path)
    assert "\nAttachments: 合同.pdf, " in document.text
    assert "secret" not in document.text and "a,b" not in document.text
    assert document.warnings[0].startswith("Attachments were not read: 合同.pdf, ")
    assert "../" not in document.text


def test_signatures_and_pictures_of_the_text_are_no_attachments(tmp_path: Path) -> None:
    message = mail("text")
    message.make_mixed()
    for kind, name, headers in (
        ("image/png", "logo.png", {"Content-ID": "<1>"}),
        ("application/pkcs7-signature", "smime.p7s", {}),
    ):
        part = EmailMessage()
        main, sub = kind.split("/")
        part.set_content(b"x", main, sub, disposition="inline", filename=name)
        for header, value in headers.items():
            part[header] = value
        message.attach(part)
    document = read(message, tmp_path)
    assert document.text == f"{HEAD}\n\ntext" and not document.warnings


def test_a_forwarded_mail_is_read_under_its_own_subject(tmp_path: Path) -> None:
    message = mail("See the mail below.")
    message.add_attachment(mail("The rent is 900.", Subject="Rent"))
    document = read(message, tmp_path)
    assert document.text.endswith("The rent is 900.")
    assert document.sections[-1].heading == ("Lease of the flat", "Rent")


def test_text_after_an_inline_picture_is_not_lost(tmp_path: Path) -> None:
    message = mail("before")
    message.make_mixed()
    picture = EmailMessage()
    picture.set_content(b"\x89PNG", "image", "png", disposition="inline", filename="x.png")
    after = EmailMessage()
    after.set_content("after")
    message.attach(picture)
    message.attach(after)
    assert read(message, tmp_path).text.endswith("before\n\nafter")


def test_quoted_printable_and_base64_are_decoded(tmp_path: Path) -> None:
    for encoding, body in (
        (b"quoted-printable", b"caf=C3=A9 =\r\nau lait"),
        (b"base64", b"Y2Fmw6kgYXUgbGFpdA=="),
    ):
        headers = (
            b"Content-Type: text/plain; charset=utf-8",
            b"Content-Transfer-Encoding: " + encoding,
        )
        assert read(raw(b"x", body, *headers), tmp_path).text.endswith("café au lait")


@pytest.mark.parametrize(
    "header",
    [
        b"From: =?utf-8?q?a?=<",
        b'To: <<<>>>, @, "',
        b"Date: yesterday",
        b"Date: Tue, 99 Foo 99999 99:99:99 +9999",
        b'Content-Type: text/plain; charset="\xff"',
        b"Content-Type: multipart/mixed",
        b"Content-Type: multipart/mixed; boundary=x",
        b"Content-Transfer-Encoding: uuencode",
        b"Content-Disposition: inline; filename*0*=''%",
        b"Subject: =?x?b?////?=",
        b"Cc: \x00\x01",
    ],
)
def test_broken_headers_lose_no_text(tmp_path: Path, header: bytes) -> None:
    document = read(raw(b"Hello", b"The text is here.", header), tmp_path)
    assert "The text is here." in document.text
    document.text.encode()


def test_an_encrypted_mail_is_refused(tmp_path: Path) -> None:
    for kind in (b"multipart/encrypted; boundary=x", b"application/pkcs7-mime; name=smime.p7m"):
        data = raw(b"x", b"--x\r\n\r\nabc\r\n--x--", b"Content-Type: " + kind)
        assert code_of(lambda: read(data, tmp_path)) == "encrypted"  # noqa: B023


def test_parts_within_parts_have_an_end(tmp_path: Path) -> None:
    head = "".join(f'Content-Type: multipart/mixed; boundary="{n}"\n\n--{n}\n' for n in range(300))
    code = code_of(lambda: read(f"From: a@b.c\n{head}\n\ntext".encode(), tmp_path))
    assert code == "damaged"


@pytest.mark.parametrize(("data", "code"), [(b"", "empty"), (b"\n\n \n", "no_text")])
def test_a_mail_without_text_is_refused(tmp_path: Path, data: bytes, code: str) -> None:
    assert code_of(lambda: read(data, tmp_path)) == code


def test_what_is_no_mail_is_read_as_text(tmp_path: Path) -> None:
    document = read(b"Just a note, not a mail.\nSecond line.", tmp_path)
    assert document.media_type == "text/plain"


def test_an_html_mail_that_declares_entities_is_refused(tmp_path: Path) -> None:
    html = b'<!DOCTYPE html [<!ENTITY a "ha">]><p>&a;</p>'
    data = raw(b"x", html, b"Content-Type: text/html")
    assert code_of(lambda: read(data, tmp_path)) == "unsafe"


def test_a_truncated_mail_keeps_what_is_there(tmp_path: Path) -> None:
    message = mail("The first part is whole.", "<p>other</p>")
    message.add_attachment(bytes(100_000), maintype="image", subtype="png", filename="x.png")
    data = message.as_bytes()
    assert "The first part is whole." in read(data[: len(data) // 2], tmp_path).text


def test_a_part_that_is_no_text_does_not_cost_the_rest(tmp_path: Path) -> None:
    message = mail("The text is here.")
    message.make_mixed()
    part = EmailMessage()
    part.set_content(bytes(range(256)) * 20, "text", "plain", disposition="inline")
    message.attach(part)
    document = read(message, tmp_path)
    assert document.text.endswith("The text is here.")
    assert document.warnings == ("A part of this e-mail is no text and was left out.",)


@pytest.mark.parametrize(
    "subject", [b"=?utf-8?b?5YWz5?=", b"=?ut\xfff-8?b?5YWz?=", b"=?utf-8?q?=Z?="]
)
def test_a_subject_that_cannot_be_decoded_is_kept_as_it_is(tmp_path: Path, subject: bytes) -> None:
    document = read(raw(subject, b"The text is here."), tmp_path)
    assert document.text.endswith("The text is here.")
    assert document.sections[0].heading
