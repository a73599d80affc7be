#!/usr/bin/env bash
# Builds the image's last stage with the binaries of this machine's Go, looks at what
# came out, and lets its worker do the main job against the embedded engines. It
# needs buildah, Go and root, and no base image: the last stage is FROM scratch.
set -euo pipefail
cd "$(dirname "$0")/.."
max_mb=40 # of what a registry holds and a node pulls, layers packed
export STORAGE_DRIVER=vfs # works without overlay mounts
out=$(mktemp -d)
image="" container=""
cleanup() {
	[ -z "$container" ] || buildah rm "$container" >/dev/null
	[ -z "$image" ] || buildah rmi "$image" >/dev/null
	rm -rf "$out"
}
trap cleanup EXIT

# The flags are the Dockerfile's own, so that they are what is checked.
version=v0.0.0-check commit=$(git rev-parse HEAD)
ldflags=$(sed -n 's/^ *-ldflags "\(.*\)" .*/\1/p' infra/Dockerfile)
tags=$(sed -n 's/.*-tags \([^ ]*\).*/\1/p' infra/Dockerfile)
[ -n "$ldflags" ] && [ -n "$tags" ] || { echo "infra/Dockerfile: no -ldflags or -tags found"; exit 1; }
ldflags=${ldflags//'${VERSION}'/$version}
ldflags=${ldflags//'${COMMIT}'/$commit}
CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags "$tags" -ldflags "$ldflags" -o "$out/" ./cmd/outbox-worker ./cmd/outboxctl
for program in outbox-worker outboxctl; do
	said=$("$out/$program" --version)
	echo "$said"
	[[ $said == "$program $version (commit $commit"* ]] || { echo "$program --version does not say $version and $commit"; exit 1; }
	! readelf -d "$out/$program" 2>/dev/null | grep -q NEEDED || { echo "$program is not static"; exit 1; }
done
cp /etc/ssl/certs/ca-certificates.crt "$out/"

sed -n '/^FROM scratch/,$p' infra/Dockerfile | sed 's#^COPY --from=build /out/\([^ ]*\) /out/#COPY \1 #; s#^COPY --from=build /out/#COPY #' >"$out/Dockerfile"
image=$(buildah bud --quiet --isolation chroot --format docker \
	--build-arg VERSION="$version" --build-arg COMMIT="$commit" -f "$out/Dockerfile" "$out")
buildah inspect --type image --format 'user {{.Docker.Config.User}}, entry point {{.Docker.Config.Entrypoint}}, health {{.Docker.Config.Healthcheck.Test}}' "$image"
packed=$(cd "$out" && tar -cf - outbox-worker outboxctl ca-certificates.crt | gzip -6 | wc -c)
unpacked=$(cd "$out" && cat outbox-worker outboxctl ca-certificates.crt | wc -c)
printf '\nto pull: %d MB, unpacked: %d MB\n' $((packed / 1000000)) $((unpacked / 1000000))
[ "$packed" -lt $((max_mb * 1000000)) ] || { echo "more than $max_mb MB to pull"; exit 1; }

# chroot: no namespaces and no cgroups, so that it runs inside a container too.
container=$(buildah from --pull-never "$image")
OUTBOX_TEST_CONTAINER=$container go test -count=1 -run TestTheImageDoesTheMainJob -v ./infra
