"""A server that answers as Amazon S3 does, as far as reading needs it: HEAD and
GET of objects (with ranges), and lists of them. It knows one access key; the
bucket "closed" refuses everybody."""
import email.utils
import hashlib
import http.server
import threading
import urllib.parse
import xml.sax.saxutils

ACCESS_KEY = "AKIAPENSTOCKTESTS000"
CHANGED = 1_700_000_000
CLOSED = "closed"


def _error(code):
    return (f"<?xml version='1.0'?><Error><Code>{code}</Code>"
            f"<Message>{code} by the test</Message></Error>").encode()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer leaves as one, and at once.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.get("length", len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        bucket, _, key = urllib.parse.unquote(url.path)[1:].partition("/")
        self.server.asked.append(
            (self.command, bucket, key, self.headers.get("Range")))
        if self.server.status is not None:
            return self._answer(self.server.status, _error("InternalError"))
        signed = self.headers.get("Authorization", "")
        if f"Credential={ACCESS_KEY}/" not in signed:
            return self._answer(403, _error("InvalidAccessKeyId"))
        if bucket == CLOSED:
            return self._answer(403, _error("AccessDenied"))
        if bucket not in self.server.buckets:
            return self._answer(404, _error("NoSuchBucket"))
        objects = self.server.buckets[bucket]
        if key:
            return self._object(objects, key)
        return self._list(bucket, objects, urllib.parse.parse_qs(url.query))

    do_HEAD = do_GET

    def _object(self, objects, key):
        if key not in objects:
            return self._answer(404, _error("NoSuchKey"))
        data = objects[key]
        more = {"Last_Modified": email.utils.formatdate(CHANGED, usegmt=True),
                "ETag": f'"{hashlib.md5(data).hexdigest()}"',
                "Accept_Ranges": "bytes"}
        if self.command == "HEAD":
            self.send_response(200)
            for name, value in more.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            return None
        wanted = self.headers.get("Range")
        if wanted is None:
            return self._answer(200, data, **more)
        first, last = wanted.removeprefix("bytes=").split("-")
        part = data[int(first):int(last) + 1]
        return self._answer(206, part, Content_Range=(
            f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"), **more)

    def _list(self, bucket, objects, query):
        prefix = query.get("prefix", [""])[0]
        found = sorted(key for key in objects if key.startswith(prefix))
        entries = "".join(
            "<Contents><Key>%s</Key><Size>%d</Size>"
            "<LastModified>2023-11-14T22:13:20.000Z</LastModified></Contents>"
            % (xml.sax.saxutils.escape(key), len(objects[key]))
            for key in found)
        return self._answer(200, (
            "<?xml version='1.0'?><ListBucketResult>"
            f"<Name>{bucket}</Name><KeyCount>{len(found)}</KeyCount>"
            f"<IsTruncated>false</IsTruncated>{entries}"
            "</ListBucketResult>").encode())


class S3Server:
    """Buckets are dicts of bytes. `asked` are the requests that came; with a
    `status` it answers all of them so."""

    def __init__(self, buckets):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                       _Handler)
        self._server.buckets, self._server.status = buckets, None
        self.asked = self._server.asked = []
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever,
                         daemon=True).start()

    def answer_all(self, status):
        self._server.status = status

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class MotoServer:
    """The same by moto, which is a second opinion."""

    def __init__(self, buckets):
        import boto3
        from moto.server import ThreadedMotoServer
        self._server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.endpoint = f"http://{host}:{port}"
        client = boto3.client("s3", endpoint_url=self.endpoint,
                              aws_access_key_id=ACCESS_KEY,
                              aws_secret_access_key="secret",
                              region_name="us-east-1")
        for bucket, objects in buckets.items():
            client.create_bucket(Bucket=bucket)
            for key, data in objects.items():
                client.put_object(Bucket=bucket, Key=key, Body=data)

    def close(self):
        self._server.stop()
