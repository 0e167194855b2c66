"""Rules plan and why: print what the Snakefile worked out."""

if __name__ == "__main__":
    print(snakemake.params.text)  # noqa: F821
