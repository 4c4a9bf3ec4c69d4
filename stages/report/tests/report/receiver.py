"""Takes CloudEvents with the SDK of the project itself, and prints what it understood, a line each."""

import http.server
import json

from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent


def events(headers, body):
    if headers.get("content-type", "").startswith("application/cloudevents-batch+json"):
        # The SDK reads one event at a time: a batch is a list of them.
        return [JSONFormat().read(CloudEvent, json.dumps(one).encode()) for one in json.loads(body)]
    return [from_http_event(HTTPMessage(headers, body))]


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            for event in events(headers, body):
                # The SDK fills in a time where there is none.
                attributes = {name: value for name, value in event.get_attributes().items() if name != "time"}
                print(json.dumps({"attributes": attributes, "data": event.get_data()}), flush=True)
            self.send_response(204)
        except Exception as error:
            print(json.dumps({"error": repr(error)}), flush=True)
            self.send_response(400)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_address[1], flush=True)
server.serve_forever()
