// SPDX-License-Identifier: MIT

// Command kindnetd does for a lab's kind nodes what kind's own does: it writes the CNI configuration for its node's pod range,
// keeps routes to the other nodes' ranges, and masquerades what pods send out of the cluster. IPv4 only, no network policies.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	account  = "/var/run/secrets/kubernetes.io/serviceaccount/"
	conflist = "/etc/cni/net.d/10-kindnet.conflist"
)

type nodes struct {
	Items []struct {
		Metadata struct{ Name string }
		Spec     struct{ PodCIDR string }
		Status   struct {
			Addresses []struct{ Type, Address string }
		}
	}
}

func list(url string) (n nodes, err error) {
	ca, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return n, err
	}
	token, err := os.ReadFile(account + "token") // read anew each time: it is replaced every hour
	if err != nil {
		return n, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer tr.CloseIdleConnections()
	q, err := http.NewRequest("GET", url+"/api/v1/nodes", nil)
	if err != nil {
		return n, err
	}
	q.Header.Set("Authorization", "Bearer "+string(token))
	r, err := (&http.Client{Transport: tr, Timeout: 10 * time.Second}).Do(q)
	if err != nil {
		return n, err
	}
	defer r.Body.Close()
	if r.StatusCode != 200 {
		return n, fmt.Errorf("%s", r.Status)
	}
	return n, json.NewDecoder(r.Body).Decode(&n)
}

func run(a ...string) error {
	if out, err := exec.Command(a[0], a[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(a, " "), err, out)
	}
	return nil
}

func masquerade(podSubnet string) error {
	rule := []string{"POSTROUTING", "-s", podSubnet, "!", "-d", podSubnet, "-m", "addrtype", "!", "--dst-type", "LOCAL", "-m", "comment", "--comment", "kindnetd: pods to the outside", "-j", "MASQUERADE"}
	t := []string{"iptables", "-w", "-t", "nat"}
	if run(append(append(t, "-C"), rule...)...) == nil {
		return nil
	}
	return run(append(append(t, "-A"), rule...)...)
}

func configure(cidr string) error {
	c := fmt.Sprintf(`{"cniVersion": "0.3.1", "name": "kindnet", "plugins": [
 {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state", "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "%s"}]]}},
 {"type": "portmap", "capabilities": {"portMappings": true}}]}
`, cidr)
	if b, _ := os.ReadFile(conflist); string(b) == c {
		return nil
	}
	log.Print("pod range ", cidr)
	if err := os.WriteFile(conflist+".tmp", []byte(c), 0o644); err != nil {
		return err
	}
	return os.Rename(conflist+".tmp", conflist)
}

func sync(url, host, podSubnet string) error {
	ns, err := list(url)
	if err != nil {
		return err
	}
	mine := false
	for _, n := range ns.Items {
		for _, a := range n.Status.Addresses {
			if a.Type != "InternalIP" || n.Spec.PodCIDR == "" || strings.Contains(a.Address, ":") {
				continue
			}
			if a.Address == host {
				err, mine = configure(n.Spec.PodCIDR), true
			} else {
				err = run("ip", "route", "replace", n.Spec.PodCIDR, "via", a.Address)
			}
			if err != nil {
				return err
			}
		}
	}
	if !mine {
		return fmt.Errorf("no pod range yet")
	}
	return masquerade(podSubnet)
}

func main() {
	host, podSubnet, cp := os.Getenv("HOST_IP"), os.Getenv("POD_SUBNET"), os.Getenv("CONTROL_PLANE_ENDPOINT")
	if cp == "" {
		cp = os.Getenv("KUBERNETES_SERVICE_HOST") + ":" + os.Getenv("KUBERNETES_SERVICE_PORT")
	}
	for {
		wait := 5 * time.Second
		if err := sync("https://"+cp, host, podSubnet); err != nil {
			log.Print(err)
			wait = time.Second
		}
		time.Sleep(wait)
	}
}
