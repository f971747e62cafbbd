// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// crictl is the two commands of crictl that kind itself calls on a node: images, and inspecti IMAGE.
func crictl() error {
	conn, err := grpc.NewClient("unix:///run/containerd/containerd.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	c, ctx, a := cri.NewImageServiceClient(conn), context.Background(), append(os.Args[1:], "", "")
	switch a[0] {
	case "images":
		r, err := c.ListImages(ctx, &cri.ListImagesRequest{})
		if err != nil {
			return err
		}
		for _, i := range r.Images {
			fmt.Println(i.Id, i.Size, strings.Join(append(i.RepoTags, i.RepoDigests...), " "))
		}
	case "inspecti":
		r, err := c.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: a[1]}})
		if err != nil {
			return err
		}
		if r.Image == nil {
			return fmt.Errorf("no such image %q present", a[1])
		}
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"status": map[string]any{"id": r.Image.Id, "repoTags": r.Image.RepoTags, "repoDigests": r.Image.RepoDigests}})
	default:
		return fmt.Errorf("this crictl knows only images and inspecti")
	}
	return nil
}
