# SPDX-License-Identifier: MIT
"""A certificate authority for one cluster, made with the openssl program."""

import subprocess

SERVICE_IP = "10.96.0.1"
EXTENSIONS = """extendedKeyUsage=serverAuth,clientAuth
keyUsage=critical,digitalSignature,keyEncipherment
"""


def _openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


class Pki:
    """ca.crt, ca.key, the key that signs service-account tokens, and what issue() adds.

    A folder that is there has them already.
    """

    def __init__(self, folder):
        self.folder = folder
        if not folder.exists():
            self._make()

    def _make(self):
        self.folder.mkdir(mode=0o700)
        ca_use = "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"
        self._key("ca")
        _openssl(
            *("req", "-x509", "-new", "-key", self["ca.key"], "-subj", "/CN=kubelab-ca"),
            *("-days", 30, "-addext", ca_use, "-out", self["ca.crt"]),
        )
        _openssl("genrsa", "-out", self["sa.key"], "2048")
        _openssl("rsa", "-in", self["sa.key"], "-pubout", "-out", self["sa.pub"])

    def __getitem__(self, name):
        """-> the path of the file `name`."""
        return self.folder / name

    def _key(self, name):
        curve = ("-name", "prime256v1", "-genkey", "-noout")
        _openssl("ecparam", *curve, "-out", self[f"{name}.key"])

    def issue(self, name, subject, san=""):
        """Writes NAME.key and NAME.crt for a subject such as /O=group/CN=user."""
        self._key(name)
        extensions = EXTENSIONS + (f"subjectAltName={san}\n" if san else "")
        self[f"{name}.ext"].write_text(extensions)
        request = self[f"{name}.csr"]
        _openssl("req", "-new", "-key", self[f"{name}.key"], "-subj", subject, "-out", request)
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self["ca.crt"], "-CAkey", self["ca.key"]),
            *("-CAcreateserial", "-days", 30, "-extfile", self[f"{name}.ext"]),
            *("-out", self[f"{name}.crt"]),
        )

    def issue_apiserver(self, address):
        """The API server's certificate, for each name that a pod or a test may call it by."""
        names = ("", ".default", ".default.svc", ".default.svc.cluster.local")
        sans = [f"DNS:kubernetes{name}" for name in names] + ["DNS:localhost"]
        sans += [f"IP:{ip}" for ip in dict.fromkeys(["127.0.0.1", SERVICE_IP, address])]
        self.issue("apiserver", "/CN=kube-apiserver", ",".join(sans))
